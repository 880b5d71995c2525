/** The common parts of the memory tools: arguments, hints and bounds. */
import { z } from 'zod'
import { Reply } from '../../../../platform/endpoint.ts'
import { fail, type GatewayError } from '../../../../platform/errors.ts'
import { jsonOf, plainJson, type ToolAnnotations } from '../../toolbox/tool.ts'

/**
 * Maximum size of one answer in bytes of JSON, for content and for lists. Clients cut an answer of more than about 50,000 characters, or hide it from
 * the model.
 */
export const answerBytesMax = 48_000

export const readsOnly: ToolAnnotations = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false }
/** The hints of a tool that replaces or deletes the previous content. A repeated call changes nothing more. */
export const overwrites: ToolAnnotations = { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false }

export const keyArgument = z.string().min(1).describe('Path of the object, for example agents/triage/notes.md.')
export const ifMatchArgument = z
  .string()
  .min(1)
  .optional()
  .describe('etag of the version that you read: the call fails with memory_conflict when somebody changed the object since.')
export const cursorArgument = z.string().min(1).max(8000).optional().describe('next_cursor of the page before, with the other arguments unchanged.')
export const nextCursor = z.string().nullable().describe('null: that was all. A page may be short, or empty, and still have a next one.')
export const etag = z.string().nullable().describe('Names this version; give it as if_match when you change the object.')

/** Returns the number of bytes of a value as JSON. */
export function jsonBytes(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value) ?? '')
}

/**
 * Returns a page of a list that stays within `answerBytesMax`. When a page is too large, it is loaded again with fewer entries, so that its cursor
 * points after the last entry shown. `entriesOf` returns the entries in page order.
 */
export async function boundedPage<P>(limit: number, load: (limit: number) => Promise<P>, entriesOf: (page: P) => readonly unknown[]): Promise<P> {
  // The loop ends, because each round requests fewer entries than the previous one.
  for (let wanted = limit; ; ) {
    const page = await load(wanted)
    const entries = entriesOf(page)
    let bytes = 0
    const fitting = entries.findIndex(entry => {
      bytes += jsonBytes(entry) + 1
      return bytes > answerBytesMax
    })
    if (fitting < 0 || entries.length <= 1) return page
    wanted = Math.min(wanted - 1, Math.max(fitting, 1))
  }
}

/**
 * Returns the content as bytes. Throws `payload_too_large` above the bound. Throws `bad_request` for a lone surrogate, because UTF-8 cannot represent
 * one.
 */
export function bytesToWrite(content: string, objectMaxBytes: number): Buffer {
  if (!content.isWellFormed()) throw fail('bad_request', { message: 'Argument content: not well-formed Unicode (a lone surrogate).' })
  const bytes = Buffer.from(content, 'utf8')
  if (bytes.byteLength > objectMaxBytes) throw tooLarge(objectMaxBytes, bytes.byteLength)
  return bytes
}

/** Returns `payload_too_large` for an object that is larger than a write over MCP allows. `size` is its size in bytes, or a lower bound of that size. */
export function tooLarge(objectMaxBytes: number, size: number): GatewayError {
  return fail('payload_too_large', {
    message: `Over MCP a memory object that is written or edited has at most ${objectMaxBytes} bytes; this one has ${size} or more.`,
  })
}

/** Returns the conditions of a write as headers. Throws `bad_request` when they contradict each other. */
export function conditionsOf(params: { if_match?: string | undefined; create_only?: boolean }): { 'if-match'?: string; 'if-none-match'?: string } {
  if (params.create_only && params.if_match !== undefined) throw fail('bad_request', { message: 'Give either if_match or create_only.' })
  return { ...(params.if_match === undefined ? {} : { 'if-match': params.if_match }), ...(params.create_only ? { 'if-none-match': '*' } : {}) }
}

/** Returns the answer of a row as plain data, with the etag from the headers. */
export function withEtag(value: unknown): Record<string, unknown> {
  const data = plainJson(jsonOf(value))
  const sent = value instanceof Reply ? value.headers['etag'] : undefined
  return { ...(typeof data === 'object' ? data : {}), ...(sent === undefined ? {} : { etag: sent }) }
}

/** Returns the given arguments as a query. Values become texts, and absent and empty values are left out. */
export function queryOf<A extends Readonly<Record<string, string | number | boolean | undefined>>>(args: A): { [N in keyof A]?: string } {
  const given = Object.entries(args).flatMap(([name, value]) => (value === undefined || value === '' ? [] : [[name, String(value)]]))
  return Object.fromEntries(given) as { [N in keyof A]?: string }
}
