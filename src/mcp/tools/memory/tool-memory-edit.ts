import { z } from 'zod'
import { fail, GatewayError } from '../../../platform/errors.ts'
import { abortSignalOf } from '../../../platform/loop/cancellation.ts'
import type { MemoryRows } from '../../mcp-rows.ts'
import { counted } from '../toolbox/text-lines.ts'
import { customTool, type Tool, type ToolContext } from '../toolbox/tool.ts'
import { ambiguousMax, type EditOutcome, type EditParams, editText, oldTextCharsMax } from './text/tool-memory-edit-text.ts'
import { fenced, keyText, untrustedNotice } from './text/tool-memory-marking.ts'
import { bytesToWrite, etag, ifMatchArgument, keyArgument, tooLarge, withEtag } from './text/tool-memory-parts.ts'
import { provenanceOf } from './text/tool-memory-provenance.ts'
import { bytesOf, textOf } from './tool-memory-read.ts'

type EditRows = Pick<MemoryRows, 'read' | 'write'>

const inputSchema = z.object({
  key: keyArgument,
  old_text: z.string().min(1).max(oldTextCharsMax).describe('Text that occurs in the object exactly once: verbatim, with its white space and line ends.'),
  new_text: z.string().describe('The text that replaces it; empty: old_text is removed.'),
  replace_all: z.boolean().default(false).describe('Replace old_text wherever it occurs.'),
  if_match: ifMatchArgument,
})
type Args = z.output<typeof inputSchema>

const outputSchema = z.object({
  key: z.string(),
  etag,
  size: z.number().int(),
  replaced: z.number().int().describe('Places that were changed.'),
  notice: z.string(),
  diff: z.string().describe('Lines as they were (-) and as they are (+), cut.'),
})

/** Maximum number of tries of an edit when others write the same object concurrently. */
const triesMax = 12
const restMs = 15

/**
 * The tool memory_edit reads an object, replaces a part of it, and writes the object on the condition that nobody else wrote meanwhile. When another
 * write came first, it starts again.
 */
export function memoryEditTool(rows: EditRows, objectMaxBytes: number): Tool {
  return customTool({
    name: 'memory_edit',
    toolset: 'memory',
    title: 'Edit memory',
    description:
      'Replace a piece of one object of shared memory without sending all of it: old_text, which must occur exactly once, by new_text. Safe while others write: what they change elsewhere in the object stays. Give more lines around old_text to make it unique, or replace_all.',
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: false },
    row: rows.write,
    inputSchema,
    outputSchema,
    async run(args, context) {
      if (args.old_text === args.new_text) throw fail('bad_request', { message: 'old_text and new_text are the same: there is nothing to change.' })
      const { done, written, size } = await edit(args, context, rows, objectMaxBytes)
      const { etag: newEtag = null } = z.object({ etag: z.string().optional() }).parse(withEtag(written))
      return {
        text: `Edited ${keyText(args.key)}: ${counted(done.replaced, 'place')}, now ${counted(size, 'byte')}, etag ${newEtag ?? 'unknown'}. ${untrustedNotice}\n${fenced(context.call.requestId, done.diff)}`,
        structured: { key: args.key, etag: newEtag, size, replaced: done.replaced, notice: untrustedNotice, diff: done.diff },
      }
    },
  })
}

type Done = Extract<EditOutcome, { kind: 'done' }>

async function edit(args: Args, context: ToolContext, rows: EditRows, objectMaxBytes: number): Promise<{ done: Done; written: unknown; size: number }> {
  const params = { oldText: args.old_text, newText: args.new_text, replacesAll: args.replace_all, charsMax: objectMaxBytes }
  for (let tries = 1; ; tries++) {
    const current = await readText(args, context, rows.read, objectMaxBytes)
    const done = doneOf(editText(current.text, params), args, params, tries)
    const body = bytesToWrite(done.text, objectMaxBytes)
    try {
      const input = { query: { key: args.key }, headers: { 'if-match': current.etag }, body }
      return { done, written: await context.invoker.call(rows.write, input, context.call), size: body.byteLength }
    } catch (error) {
      if (args.if_match !== undefined || tries >= triesMax || !isLostRace(error)) throw error
      await context.clock.sleep(restOf(tries, context.call.requestId), abortSignalOf(context.call.signal))
    }
  }
}

/**
 * Reads the current object. Throws `bad_request` when the object is not text, and `memory_conflict` when it is not the version that the caller has
 * read.
 */
async function readText(args: Args, context: ToolContext, row: MemoryRows['read'], objectMaxBytes: number): Promise<{ text: string; etag: string }> {
  const { bytes, headers } = bytesOf(await context.invoker.call(row, { query: { key: args.key } }, context.call))
  const current = headers['etag'] ?? ''
  if (args.if_match !== undefined && !names(args.if_match, current, headers['x-br-meta-sha256'])) throw conflict(current, headers)
  if (bytes.byteLength > objectMaxBytes) throw tooLarge(objectMaxBytes, bytes.byteLength)
  const text = textOf(bytes)
  if (text === null) throw fail('bad_request', { message: `${keyText(args.key)} is no UTF-8 text, so it cannot be edited. memory_write replaces it.` })
  return { text, etag: current }
}

/** Returns the error for a write whose condition is out of date. The error contains the current etag, the time of the last write, and its author. */
function conflict(current: string, headers: Readonly<Record<string, string>>): GatewayError {
  const { at, user, agent, verified } = provenanceOf(headers)
  const author = user === null ? null : { user, ...(agent === null ? {} : { agent, verified: verified === true }) }
  return fail('memory_conflict', { extra: { current_etag: current, modified: at, author } })
}

/**
 * Returns whether a condition names the current version. It may name the version by etag with or without quotes, by the hash of its content, or by *
 * for any version.
 */
function names(ifMatch: string, current: string, sha256: string | undefined): boolean {
  const known = ['*', current, current.replaceAll('"', ''), ...(sha256 === undefined ? [] : [`"sha256:${sha256}"`, `sha256:${sha256}`])]
  return ifMatch.split(',').some(part => known.includes(part.trim()))
}

/**
 * Returns the edited text, or throws the reason why the edit is not possible. After a failed try, the message says that another writer's change is
 * the cause.
 */
function doneOf(outcome: EditOutcome, { key }: Args, params: EditParams, tries: number): Done {
  if (outcome.kind === 'done') return outcome
  if (outcome.kind === 'too-long') throw tooLarge(params.charsMax, outcome.chars)
  if (tries > 1) throw fail('memory_conflict', { message: `Somebody changed ${keyText(key)} meanwhile, and old_text does not occur exactly once any more.` })
  if (outcome.kind === 'absent')
    throw fail('bad_request', {
      message: `old_text does not occur verbatim in ${keyText(key)}. ${outcome.hint} Read it with memory_read first.`.replace('  ', ' '),
    })
  const where = `line${outcome.lines.length === 1 ? '' : 's'} ${outcome.lines.join(', ')}${outcome.count > outcome.lines.length ? ', …' : ''}`
  const times = outcome.count < ambiguousMax ? `${outcome.count} times` : `at least ${ambiguousMax} times`
  throw fail('bad_request', {
    message: `old_text occurs ${times} in ${keyText(key)} (${where}). Give more of the text around the place that you mean, or replace_all to change all of them.`,
  })
}

/** Returns whether another writer was first, or is writing now. */
function isLostRace(error: unknown): boolean {
  return error instanceof GatewayError && (error.errorName === 'memory_conflict' || error.errorName === 'memory_busy')
}

/** Returns a wait in milliseconds. It depends on the random request id, so calls that failed together retry at different times. */
function restOf(tries: number, requestId: string): number {
  return Math.ceil(((Number.parseInt(requestId.slice(-2), 16) || 0) / 255) * restMs * tries)
}
