/** Tools for earlier versions of an object. */
import { z } from 'zod'
import type { MemoryRows } from '../../mcp-rows.ts'
import { counted } from '../toolbox/text-lines.ts'
import { customTool, jsonOf, plainJson, rowTool, type Tool } from '../toolbox/tool.ts'
import { authorShape, authorText, keyText, namesNotice } from './text/tool-memory-marking.ts'
import {
  boundedPage,
  conditionsOf,
  cursorArgument,
  etag,
  ifMatchArgument,
  keyArgument,
  nextCursor,
  overwrites,
  queryOf,
  readsOnly,
  withEtag,
} from './text/tool-memory-parts.ts'

const versionShape = z.object({
  version: z.string().nullable().describe('null: it did not come through the gateway and has no version yet.'),
  how: z.enum(['put', 'append', 'restore', 'promote', 'delete']),
  current: z.boolean().describe('true for what memory_read shows.'),
  size: z.number().int(),
  etag: z.string().nullable(),
  sha256: z.string().nullable(),
  author: authorShape,
  modified: z.string(),
})
const historyShape = z.object({ key: z.string(), versions: z.array(versionShape), next_cursor: nextCursor })
type History = z.output<typeof historyShape>

/** The tool memory_history lists the versions of a key, newest first. */
export function memoryHistoryTool(row: MemoryRows['history']): Tool {
  return customTool({
    name: 'memory_history',
    toolset: 'memory',
    title: 'History of memory',
    description:
      'The versions of one key of shared memory, newest first: when, how and by whom each was written or deleted. memory_read with version shows one, memory_restore writes it again.',
    annotations: readsOnly,
    row,
    inputSchema: z.object({
      key: keyArgument,
      limit: z.number().int().min(1).max(200).default(20).describe('Most versions of a page.'),
      cursor: cursorArgument,
    }),
    outputSchema: historyShape,
    async run(args, context) {
      const load = async (limit: number): Promise<History> =>
        historyShape.parse(plainJson(jsonOf(await context.invoker.call(row, { query: queryOf({ ...args, limit }) }, context.call))))
      const page = await boundedPage(args.limit, load, ({ versions }) => versions)
      return { text: textOf(page), structured: page }
    },
  })
}

function textOf({ key, versions, next_cursor: next }: History): string {
  const lines = versions.map(({ version, how, current, size, author, modified }) => {
    const what = how === 'delete' ? 'deleted' : `${how}  ${size} B`
    return `${modified}  ${what}  ${authorText(author)}  ${version === null ? 'no version yet' : `version ${version}`}${current ? '  (current)' : ''}`
  })
  const more = next === null ? [] : [`There are older ones: call memory_history again with the same key and cursor ${JSON.stringify(next)}.`]
  return [`${keyText(key)}: ${counted(versions.length, 'version')}, newest first. ${namesNotice}`, ...lines, ...more].join('\n')
}

/** The tool memory_restore writes an earlier version again, as a new version. */
export function memoryRestoreTool(row: MemoryRows['restore']): Tool {
  const outputSchema = z.object({ key: z.string(), size: z.number().int(), etag, restored_from: z.string() })
  return rowTool({
    name: 'memory_restore',
    toolset: 'memory',
    title: 'Restore memory',
    description:
      'Write an earlier version of one object of shared memory again, as its newest version; also after a deletion. The current content stays in the history.',
    annotations: overwrites,
    row,
    inputSchema: z.object({
      key: keyArgument,
      version: z.string().min(1).max(100).describe('From memory_history.'),
      if_match: ifMatchArgument,
      create_only: z.boolean().default(false).describe('Fail with memory_conflict when the object exists: use it to restore a deleted object.'),
    }),
    outputSchema,
    toInput: ({ key, version, ...params }) => ({ body: { key, version }, headers: conditionsOf(params) }),
    toResult: value => {
      const { key, size, etag: made, restored_from: from } = outputSchema.parse(withEtag(value))
      return {
        text: `Restored ${keyText(key)} from version ${from}: ${counted(size, 'byte')}, etag ${made ?? 'unknown'}.`,
        structured: { key, size, etag: made, restored_from: from },
      }
    },
  })
}
