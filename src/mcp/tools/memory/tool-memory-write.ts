/** Tools that write whole objects: write, append and delete. */
import { z } from 'zod'
import type { MemoryRows } from '../../mcp-rows.ts'
import { counted } from '../toolbox/text-lines.ts'
import { rowTool, type Tool } from '../toolbox/tool.ts'
import { keyText } from './text/tool-memory-marking.ts'
import { bytesToWrite, conditionsOf, etag, ifMatchArgument, keyArgument, overwrites, withEtag } from './text/tool-memory-parts.ts'

const writtenShape = z.object({ key: z.string(), size: z.number().int(), etag })

/** The tool memory_write writes one whole object. */
export function memoryWriteTool(row: MemoryRows['write'], objectMaxBytes: number): Tool {
  return rowTool({
    name: 'memory_write',
    toolset: 'memory',
    title: 'Write memory',
    description:
      'Write one object of shared memory, replacing what is there. Give if_match when you change what you have read, create_only for a new key; to change a part of it use memory_edit, for a journal memory_append. Your user and agent are stamped on it.',
    annotations: overwrites,
    row,
    inputSchema: z.object({
      key: keyArgument,
      content: z.string().describe('The whole new text of the object.'),
      if_match: ifMatchArgument,
      create_only: z.boolean().default(false).describe('Fail with memory_conflict when the key exists.'),
    }),
    outputSchema: writtenShape,
    toInput: args => ({ query: { key: args.key }, headers: conditionsOf(args), body: bytesToWrite(args.content, objectMaxBytes) }),
    toResult: (value, args) => {
      const written = writtenShape.parse({ etag: null, ...withEtag(value), key: args.key })
      return { text: `Wrote ${keyText(args.key)}, ${counted(written.size, 'byte')}, etag ${written.etag ?? 'unknown'}.`, structured: written }
    },
  })
}

/** The tool memory_append adds an entry, as a new object, to a folder. In most cases the folder is a journal. */
export function memoryAppendTool(row: MemoryRows['appendMemory'], objectMaxBytes: number): Tool {
  return rowTool({
    name: 'memory_append',
    toolset: 'memory',
    title: 'Append to memory',
    description:
      'Add an entry to a folder of shared memory, above all to a journal such as workspaces/3/journal. Every entry is an object of its own with a name made from day, time and author, so that nobody loses anything, however many write concurrently. Entries are never changed afterwards.',
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false },
    row,
    inputSchema: z.object({
      path: z.string().min(1).describe('The folder, for example workspaces/3/journal or agents/triage/log.'),
      content: z.string().min(1).describe('Text of the entry.'),
    }),
    outputSchema: writtenShape,
    toInput: args => {
      bytesToWrite(args.content, objectMaxBytes)
      return { body: args }
    },
    toResult: value => {
      const { key, size, etag: made } = writtenShape.parse(withEtag(value))
      return { text: `Appended ${keyText(key)}, ${counted(size, 'byte')}, etag ${made ?? 'unknown'}.`, structured: { key, size, etag: made } }
    },
  })
}

/** The tool memory_delete deletes one object. Its earlier versions stay, unless the request removes them too. */
export function memoryDeleteTool(row: MemoryRows['remove']): Tool {
  const outputSchema = z.object({ key: z.string(), deleted: z.literal(true), history_erased: z.boolean() })
  return rowTool({
    name: 'memory_delete',
    toolset: 'memory',
    title: 'Delete memory',
    description:
      'Delete one object of shared memory from a scope you may write to. Deleting what is not there is no error. Earlier versions stay for a while, so that memory_restore can bring it back, unless erase_history is true.',
    annotations: overwrites,
    row,
    inputSchema: z.object({
      key: keyArgument,
      if_match: ifMatchArgument,
      erase_history: z
        .boolean()
        .default(false)
        .describe('Remove all earlier versions too, permanently: use it for content that should never have been written, such as a secret.'),
    }),
    outputSchema,
    toInput: args => ({ query: { key: args.key, ...(args.erase_history ? { history: 'erase' } : {}) }, headers: conditionsOf(args) }),
    toResult: (_value, { key, erase_history: isErased }) => ({
      text: `Deleted ${keyText(key)}${isErased ? ' and every earlier version of it' : ''}.`,
      structured: { key, deleted: true, history_erased: isErased },
    }),
  })
}
