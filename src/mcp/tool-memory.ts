/** Shared memory as tools: the rows of /v1/me/memory with the words and the caution that agents need. */
import { z } from 'zod'
import { type AnyRow, Reply } from '../platform/endpoint.ts'
import { fail } from '../platform/errors.ts'
import { jsonOf, plainJson, rowTool, type Tool, type ToolAnnotations } from './tool.ts'
import { memoryReadTool } from './tool-memory-read.ts'

/** The rows of shared memory that tools refer to. */
export interface MemoryRows {
  readonly paths: AnyRow
  readonly list: AnyRow
  readonly read: AnyRow
  readonly write: AnyRow
  readonly remove: AnyRow
}

const readsOnly: ToolAnnotations = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false }
const overwrites: ToolAnnotations = { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false }

const key = z.string().min(1).describe('Path of the object, for example agents/triage/notes.md.')
const ifMatch = z.string().min(1).optional().describe('etag of the version you read; the call fails with memory_conflict when somebody changed it since.')

/** All memory tools; `objectMaxBytes` bounds one object over MCP (setting MEMORY_MCP_MAX_BYTES). */
export function memoryTools(rows: MemoryRows, objectMaxBytes: number): Tool[] {
  return [pathsTool(rows.paths), listTool(rows.list), memoryReadTool(rows.read, objectMaxBytes), writeTool(rows.write, objectMaxBytes), deleteTool(rows.remove)]
}

function pathsTool(row: AnyRow): Tool {
  const outputSchema = z.looseObject({ scopes: z.record(z.string(), z.unknown()) })
  return rowTool({
    name: 'memory_paths',
    toolset: 'memory',
    title: 'Memory scopes',
    description:
      'The path prefixes of shared memory that this credential may use: its user, workspace, organisation and shares. Paths under agents/ are open to every credential of the organisation.',
    annotations: readsOnly,
    row,
    inputSchema: z.object({}),
    outputSchema,
    toInput: () => ({}),
    toResult: value => {
      const paths = outputSchema.parse(plainJson(jsonOf(value)))
      return { text: JSON.stringify(paths), structured: paths }
    },
  })
}

function listTool(row: AnyRow): Tool {
  const limitDefault = 100
  const entry = z.looseObject({ key: z.string(), size: z.number(), modified: z.string() })
  const outputSchema = z.looseObject({
    keys: z.array(entry),
    prefixes: z.array(z.string()).optional().describe('Only with a delimiter: the folders below the prefix.'),
    next_cursor: z.string().nullable().describe('null: this was the last page. A page may be short and still have a next one.'),
  })
  return rowTool({
    name: 'memory_list',
    toolset: 'memory',
    title: 'List memory',
    description: 'Keys in shared memory that this credential may read, with size in bytes, time of change and author, sorted by key.',
    annotations: readsOnly,
    row,
    inputSchema: z.object({
      prefix: z.string().default('').describe('Only keys that begin so, for example agents/.'),
      delimiter: z.literal('/').optional().describe('Show one level: folders below the prefix come as prefixes.'),
      modified_since: z.string().optional().describe('Only keys written since that time, for example 2026-01-31T12:00:00Z.'),
      author: z.string().optional().describe('Only keys whose last write was by user:<id> or agent:<id>.'),
      limit: z.number().int().min(1).max(1000).default(limitDefault),
      cursor: z.string().min(1).optional().describe('next_cursor of the page before.'),
    }),
    outputSchema,
    toInput: ({ limit, ...wishes }) => {
      const given = Object.entries(wishes).flatMap(([name, value]) => (value === undefined || value === '' ? [] : [[name, value]]))
      return { query: { limit: String(limit), ...Object.fromEntries(given) } }
    },
    toResult: value => {
      const page = outputSchema.parse(plainJson(jsonOf(value)))
      return { text: JSON.stringify(page), structured: page }
    },
  })
}

function writeTool(row: AnyRow, objectMaxBytes: number): Tool {
  const outputSchema = z.looseObject({ key: z.string(), size: z.number(), etag: z.string().nullable() })
  return rowTool({
    name: 'memory_write',
    toolset: 'memory',
    title: 'Write memory',
    description:
      'Write one object of shared memory, replacing what is there. Give if_match when you change what you have read, create_only for a new key. Your user and agent are stamped on it.',
    annotations: overwrites,
    row,
    inputSchema: z.object({
      key,
      content: z.string(),
      if_match: ifMatch,
      create_only: z.boolean().default(false).describe('Fail with memory_conflict when the key exists.'),
    }),
    outputSchema,
    toInput: args => {
      const body = Buffer.from(args.content, 'utf8')
      if (body.byteLength > objectMaxBytes)
        throw fail('payload_too_large', { message: `Over MCP a memory object has at most ${objectMaxBytes} bytes; this one has ${body.byteLength}.` })
      if (args.create_only && args.if_match !== undefined) throw fail('bad_request', { message: 'Give either if_match or create_only.' })
      return { query: { key: args.key }, headers: { ...conditionOf(args.if_match), ...(args.create_only ? { 'if-none-match': '*' } : {}) }, body }
    },
    toResult: (value, args) => {
      const written = { key: args.key, size: Buffer.byteLength(args.content), etag: null, ...headerFields(value), ...asRecord(jsonOf(value)) }
      return {
        text: `Wrote ${args.key}, ${Buffer.byteLength(args.content)} bytes${written.etag === null ? '' : `, etag ${String(written.etag)}`}.`,
        structured: outputSchema.parse(plainJson(written)),
      }
    },
  })
}

function deleteTool(row: AnyRow): Tool {
  return rowTool({
    name: 'memory_delete',
    toolset: 'memory',
    title: 'Delete memory',
    description: 'Delete one object of shared memory from a scope you may write to. Deleting what is not there is no error.',
    annotations: overwrites,
    row,
    inputSchema: z.object({ key, if_match: ifMatch }),
    outputSchema: z.looseObject({ key: z.string(), deleted: z.literal(true) }),
    toInput: args => ({ query: { key: args.key }, headers: conditionOf(args.if_match) }),
    toResult: (_value, args) => ({ text: `Deleted ${args.key}.`, structured: { key: args.key, deleted: true } }),
  })
}

function conditionOf(etag: string | undefined): Record<string, string> {
  return etag === undefined ? {} : { 'if-match': etag }
}

/** The etag that a row sends as a header, when it does. */
function headerFields(value: unknown): { etag?: string } {
  const etag = value instanceof Reply ? value.headers['etag'] : undefined
  return etag === undefined ? {} : { etag }
}

function asRecord(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? { ...value } : {}
}
