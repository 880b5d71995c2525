import { z } from 'zod'
import type { MemoryRows } from '../../mcp-rows.ts'
import { counted } from '../toolbox/text-lines.ts'
import { customTool, jsonOf, plainJson, type Tool } from '../toolbox/tool.ts'
import { authorShape, authorText, keyText, namesNotice } from './text/tool-memory-marking.ts'
import { boundedPage, cursorArgument, nextCursor, queryOf, readsOnly } from './text/tool-memory-parts.ts'

const limitDefault = 100

const entryShape = z.object({ key: z.string(), size: z.number().int(), modified: z.string(), etag: z.string(), author: authorShape })
const outputSchema = z.object({
  keys: z.array(entryShape),
  prefixes: z.array(z.string()).optional().describe('Only with a delimiter: the folders below the prefix.'),
  next_cursor: nextCursor,
})
type Page = z.output<typeof outputSchema>

/** The tool memory_list lists keys under a prefix, one on each line. */
export function memoryListTool(row: MemoryRows['list']): Tool {
  return customTool({
    name: 'memory_list',
    toolset: 'memory',
    title: 'List memory',
    description:
      'Keys in shared memory that this credential may read, sorted, with size in bytes, time of change, etag and author. Use delimiter "/" to see one level of folders, modified_since to see what is new. For the content of objects use memory_search.',
    annotations: readsOnly,
    row,
    inputSchema: z.object({
      prefix: z.string().default('').describe('Only keys that begin so, for example agents/. Left out: all that you may read.'),
      delimiter: z.literal('/').optional().describe('Show one level: folders below the prefix come as prefixes, not all their keys.'),
      modified_since: z.string().optional().describe('Only keys written since that time or day: 2026-01-31T12:00:00Z or 2026-01-31.'),
      author: z.string().optional().describe('Only keys whose last write was by user:<id> or agent:<id>.'),
      limit: z.number().int().min(1).max(1000).default(limitDefault).describe('Most entries of a page; a page of long keys is shorter.'),
      cursor: cursorArgument,
    }),
    outputSchema,
    async run(args, context) {
      const load = async (limit: number): Promise<Page> =>
        outputSchema.parse(plainJson(jsonOf(await context.invoker.call(row, { query: queryOf({ ...args, limit }) }, context.call))))
      const page = await boundedPage(args.limit, load, entriesOf)
      return { text: textOf(page, args.prefix), structured: page }
    },
  })
}

/** Returns folders and keys together in the order of the pages, sorted by name. */
function entriesOf({ keys, prefixes = [] }: Page): unknown[] {
  const folders = prefixes.map(prefix => ({ name: prefix, entry: prefix }))
  const objects = keys.map(entry => ({ name: entry.key, entry }))
  return [...folders, ...objects].sort((a, b) => Buffer.compare(Buffer.from(a.name), Buffer.from(b.name))).map(({ entry }) => entry)
}

function textOf(page: Page, prefix: string): string {
  const { keys, prefixes = [], next_cursor: next } = page
  const where = prefix === '' ? '' : ` under ${keyText(prefix)}`
  const more = next === null ? [] : [`There is more: call memory_list again with the same arguments and cursor ${JSON.stringify(next)}.`]
  if (keys.length + prefixes.length === 0) return [`No readable key fits${where}${next === null ? '.' : ' so far.'}`, ...more].join('\n')
  const found = [...(prefixes.length === 0 ? [] : [counted(prefixes.length, 'folder')]), ...(keys.length === 0 ? [] : [counted(keys.length, 'key')])].join(
    ' and ',
  )
  const lines = keys.map(({ key, size, modified, author }) => `${modified}  ${size} B  ${authorText(author)}  ${keyText(key)}`)
  return [`${found}${where}. ${namesNotice}`, ...prefixes.map(folder => `folder  ${keyText(folder)}`), ...lines, ...more].join('\n')
}
