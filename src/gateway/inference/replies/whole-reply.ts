/**
 * Reads whole replies of providers and writes them for the client before the call is charged. A reply that cannot be read or written is a
 * failure of the route.
 */
import { fail } from '../../../platform/errors.ts'
import { publicMessage } from '../../providers/public-message.ts'
import { errorOfChoices } from '../../wire/chat/chat-choice-error.ts'
import type { ChatStreamDecoder } from '../../wire/chat/chat-stream.ts'
import { anyJsonMaxBytes, isBoundedInTurns, operatorReplyBounds, ownReplyBounds } from '../../wire/json/json-bounds.ts'
import { asItIs, type LeanJson } from '../../wire/json/number-lists.ts'
import { modelAt, withModel } from '../../wire/model-echo.ts'
import { ownEventMaxBytes } from '../../wire/sse/sse-events.ts'
import { plainUsage, type TokenUsage, usageFromOpenAi, usageToOpenAi } from '../../wire/usage.ts'
import { type AttemptContext, echoFor, failed, replyContext } from '../attempt/attempt-context.ts'
import { type PlainReply, plainReplyOf } from '../attempt/plain-reply.ts'
import { toolCallsAreSound } from '../attempt/tool-calls.ts'
import { believed, isPlain, usageBoundsOf } from '../charge/believed.ts'
import { tokensOfChars } from '../charge/estimate.ts'
import type { Failed, WholeAnswer } from './answer.ts'
import { CollectedReply, saidChars } from './reply-shapes.ts'
import { priceAsNamed } from './served-model.ts'
import { billedUsageOf, UnreadReplyError, unreadReply } from './unread-usage.ts'

type Fields = Record<string, unknown>

const jsonType = { 'content-type': 'application/json; charset=utf-8' }

/** A reply longer than this takes a heavy turn, as a long request does. */
const lightReplyBytes = 1024 * 1024

/**
 * Reads a whole reply and calls `write` with its value. The reply must be within the bounds of its provider, which are checked in pieces. A long
 * reply is read in one turn of its organisation and written in the next, so that no reply delays the other callers for longer than one parse.
 * Decision 0468 gives the reasons.
 *
 * A reply beyond the bounds from an own server is a failure. From a provider of the catalog it throws `UnreadReplyError`, because that provider
 * bills the reply and another provider would make it again.
 */
export async function readInTurn<T>(bytes: Buffer, status: number, attemptContext: AttemptContext, write: (value: Fields) => T): Promise<T | Failed> {
  const { attempt, context } = attemptContext
  const { id, userGiven } = attempt.route.provider
  const bounds = userGiven === true ? ownReplyBounds : operatorReplyBounds
  if (bytes.length > anyJsonMaxBytes && !(await isBoundedInTurns(bytes, bounds))) {
    const message = `${id} answered ${status} with a body that is nested too deeply, too long for its characters, or has too many values; at most ${bounds.valuesMax} are read`
    if (userGiven === true) return failed(attempt, status, message)
    throw await unreadReply(bytes, message, attemptContext)
  }
  const isLight = bytes.length <= lightReplyBytes
  const inTurn = <R>(work: () => R): R | Promise<R> => (isLight ? work() : context.deps.heavyTurns.run(context.orgId, work))
  const reading = inTurn(() => readWhole(bytes, status, attemptContext))
  const read = reading instanceof Promise ? await reading : reading
  return 'failure' in read ? read : inTurn(() => write(read.value))
}

/** A reply up to this length is read without room, turn or promise. It is also the free part of each reply that the process keeps. */
export const shortReplyBytes = anyJsonMaxBytes

/** Returns a short reply as the answer for the client. It blocks the event loop for some microseconds only. Throws `bad_request` as `whole` does. */
export function shortWhole(bytes: Buffer, status: number, attemptContext: AttemptContext): WholeAnswer | Failed {
  const { isRelay, context } = attemptContext
  const plain = isRelay && context.kind.format.id === 'openai' ? plainReplyOf(bytes) : null
  const answer = plain === null ? null : plainWhole(bytes, plain, attemptContext)
  if (answer !== null) return answer
  const read = readWhole(bytes, status, attemptContext)
  return 'failure' in read ? read : whole(asItIs(bytes), read.value, status, attemptContext)
}

/** Returns the answer for an ordinary reply. Null when its usage is doubtful, because the shown text must then be measured. */
function plainWhole(bytes: Buffer, { model, modelFrom, modelTo, usage }: PlainReply, attemptContext: AttemptContext): WholeAnswer | null {
  const { attempt, context } = attemptContext
  const { request, kind } = context
  if (!isPlain(usage, usageBoundsOf(request, attempt, kind.hasOutput), bytes.length)) return null
  priceAsNamed(model, attemptContext)
  const echo = echoFor(attemptContext)
  const body = echo === null ? bytes : Buffer.concat([bytes.subarray(0, modelFrom), echo, bytes.subarray(modelTo)])
  return answerOf(attemptContext, usage, false, body)
}

/** Returns the parsed reply `value` as the answer for the client. Throws `bad_request` when a part of the client's own body cannot be written back. */
export function whole(reply: LeanJson, value: Fields, status: number, attemptContext: AttemptContext): WholeAnswer | Failed {
  const bytes = reply.whole
  const { dialect, isRelay, context } = attemptContext
  const { request, kind } = context
  const { operation } = request
  if (request.needs.tools) noteToolCalls(value, attemptContext)
  priceAsNamed(value['model'], attemptContext)
  return translatedOrBilled(value, bytes.length, status, attemptContext, () => {
    const claimed = dialect.usageOf(operation, value)
    if (isRelay) {
      const reported = claimed === null ? null : believedOf(claimed, bytes.length, () => saidChars(dialect.reply(operation, value)), attemptContext)
      const usage = reported ?? estimateOf(dialect.reply(operation, value), attemptContext)
      return answerOf(attemptContext, usage, reported === null, named(completed(kind.complete(value, usage), reply), reply, attemptContext))
    }
    const hub = dialect.reply(operation, value)
    const reported = claimed === null ? null : believedOf(claimed, bytes.length, () => saidChars(hub), attemptContext)
    const usage = reported ?? estimateOf(hub, attemptContext)
    return answerOf(attemptContext, usage, reported === null, completed(kind.format.whole(hub, usage, replyContext(attemptContext, context.bill)), reply))
  })
}

/** Returns the reply as an object with an answer. A reply with status 200 that is an error, or has no answer, is a failure. */
function readWhole(bytes: Buffer, status: number, attemptContext: AttemptContext): { readonly value: Fields } | Failed {
  const { attempt, dialect, context } = attemptContext
  const { id } = attempt.route.provider
  const value = parseReply(bytes)
  if (value === null) return failed(attempt, status, `${id} answered ${status} with a body that is no JSON object`)
  const claimed = errorOfReply(value)
  if (claimed !== null) {
    const text = publicMessage(JSON.stringify({ error: claimed }), attempt.credential, context.request.native.body)
    const failure = failed(attempt, status, `${id} answered ${status} with an error: ${text}`)
    // A response of that status is billed for what was made before it failed, as its stream is.
    const made = value['status'] === 'failed' ? dialect.usageOf(context.request.operation, value) : null
    return made === null ? failure : { ...failure, made: believedOf(made, bytes.length, () => 0, attemptContext) }
  }
  return dialect.answers(context.request.operation, value) ? { value } : failed(attempt, status, `${id} answered ${status} without an answer`)
}

/** The bytes of a stream that are read in one turn. */
const turnBytes = 64 * 1024

/** Returns the whole reply for a complete stream that came although no stream was requested. A long one is read in turns of its organisation. */
export async function streamAsWhole(bytes: Buffer, status: number, attemptContext: AttemptContext): Promise<WholeAnswer | Failed> {
  const { attempt, dialect, context } = attemptContext
  const decoder = dialect.decoder(attempt.route.provider.userGiven === true ? ownEventMaxBytes : undefined)
  const collected = new CollectedReply()
  const inTurn = <R>(work: () => R): R | Promise<R> => (bytes.length <= shortReplyBytes ? work() : context.deps.heavyTurns.run(context.orgId, work))
  for (let at = 0; at < bytes.length; at += turnBytes) {
    const read = await inTurn(() => translated(status, attemptContext, () => ({ isMore: collected.add(decoder.push(bytes.subarray(at, at + turnBytes))) })))
    if ('failure' in read) return read
    if (!read.isMore) break
  }
  return inTurn(() => collectedAnswer(collected, decoder, bytes.length, status, attemptContext))
}

function collectedAnswer(
  collected: CollectedReply,
  decoder: ChatStreamDecoder,
  replyBytes: number,
  status: number,
  attemptContext: AttemptContext,
): WholeAnswer | Failed {
  const { attempt, context } = attemptContext
  return translated(status, attemptContext, () => {
    collected.add(decoder.end())
    const reply = collected.reply
    if (reply === null) return failed(attempt, status, `${attempt.route.provider.id} answered with a stream that does not reach its end`)
    priceAsNamed(reply['model'], attemptContext)
    const claimed = usageFromOpenAi(reply['usage'])
    const reported = claimed === null ? null : believedOf(claimed, replyBytes, () => saidChars(reply), attemptContext)
    const usage = reported ?? estimateOf(reply, attemptContext)
    const made = context.kind.format.whole({ ...reply, usage: usageToOpenAi(usage) }, usage, replyContext(attemptContext, context.bill))
    return answerOf(attemptContext, usage, reported === null, Buffer.from(JSON.stringify(made)))
  })
}

/**
 * Returns the result of `write` for the whole reply `value`. A reply of a provider of the catalog that reports usage but cannot be translated throws
 * `UnreadReplyError`, because the provider bills it. Other replies that cannot be translated are failures of the route, as `translated` says.
 */
export function translatedOrBilled<T>(value: Fields, replyBytes: number, status: number, attemptContext: AttemptContext, write: () => T): T | Failed {
  const made = translated(status, attemptContext, write)
  if (typeof made !== 'object' || made === null || !('failure' in made) || attemptContext.attempt.route.provider.userGiven === true) return made
  const usage = billedUsageOf(value, replyBytes, attemptContext)
  if (usage === null) return made
  throw new UnreadReplyError(made.message, usage, 'reply_not_translated')
}

/**
 * Returns the result of `write`, or a failure of the route when the reply cannot be translated. A body of the client that cannot be written is
 * not the route's fault and throws `bad_request`.
 */
export function translated<T>(status: number, { attempt, context }: AttemptContext, write: () => T): T | Failed {
  try {
    return write()
  } catch (cause) {
    if (cause instanceof RangeError && !canBeWritten(context.request.native.body))
      throw fail('bad_request', { message: 'The body is nested too deeply.', cause })
    return failed(attempt, status, `${attempt.route.provider.id} answered ${status} with a body that cannot be translated`)
  }
}

function canBeWritten(body: Readonly<Fields>): boolean {
  try {
    JSON.stringify(body)
    return true
  } catch {
    return false
  }
}

function answerOf({ attempt, headers }: AttemptContext, usage: TokenUsage, estimated: boolean, body: Uint8Array): WholeAnswer {
  return { kind: 'whole', attempt, headers: Object.keys(headers).length === 0 ? jsonType : { ...headers, ...jsonType }, usage, estimated, body }
}

/** Returns the believed part of a reported usage. The output is counted only when the figures are doubtful. A reply has no more characters than bytes. */
function believedOf(claimed: TokenUsage, replyBytes: number, shown: () => number, { attempt, context: { request, kind } }: AttemptContext): TokenUsage {
  const bounds = usageBoundsOf(request, attempt, kind.hasOutput)
  return isPlain(claimed, bounds, kind.hasOutput ? replyBytes : 0) ? claimed : believed(claimed, bounds, kind.hasOutput ? shown() : 0)
}

/** Returns the estimated usage for a reply without reported usage. A stream with the same text has the same estimate. */
function estimateOf(hub: Readonly<Fields>, { context: { request, kind } }: AttemptContext): TokenUsage {
  return plainUsage(request.promptTokens, kind.hasOutput ? tokensOfChars(saidChars(hub)) : 0)
}

/** Reports to routing whether the reply's tool calls are sound. Routing then knows which routes it can trust with tools. */
function noteToolCalls(reply: Fields, { attempt, context: { orgId, deps } }: AttemptContext): void {
  const sound = attempt.route.dialect === 'openai' ? toolCallsAreSound(reply) : null
  if (sound !== null) deps.observer.calledTools(attempt, orgId, sound)
}

/** Writes the catalog's model id into a reply, in the hub format only. Replies in the other formats are relayed byte for byte. */
function named(bytes: Buffer, { whole: sent, lean, offsetOf }: LeanJson, attemptContext: AttemptContext): Buffer {
  const echo = attemptContext.context.kind.format.id === 'openai' ? echoFor(attemptContext) : null
  if (echo === null) return bytes
  const found = lean === sent ? null : modelAt(lean, 0, lean.length)
  if (found === null) return withModel(bytes, echo)
  return Buffer.concat([bytes.subarray(0, offsetOf(found.from)), echo, bytes.subarray(offsetOf(found.to))])
}

/**
 * Returns the reply with the content of `value`, or unchanged when `value` is null. When the reply was parsed without its lists of numbers, only
 * `usage` can be new, and it is inserted after the last member.
 */
function completed(value: Fields | null, { whole: sent, lean }: LeanJson): Buffer {
  if (value === null) return sent
  if (lean === sent) return Buffer.from(JSON.stringify(value))
  const close = sent.lastIndexOf('}')
  return Buffer.concat([sent.subarray(0, close), Buffer.from(`,"usage":${JSON.stringify(value['usage'])}`), sent.subarray(close)])
}

const answerNames = ['choices', 'content', 'output', 'candidates', 'data'] as const

/** Returns the error that some providers put into a reply with status 200. Null when the reply has an answer. */
function errorOfReply(reply: Fields): unknown {
  const ofChoice = errorOfChoices(reply['choices'])
  if (ofChoice !== null) return ofChoice
  const { error } = reply
  if (error === undefined || error === null) return null
  // A response with the status `failed` has no answer, although it has a list of items.
  return reply['status'] !== 'failed' && answerNames.some(name => Array.isArray(reply[name])) ? null : error
}

function parseReply(bytes: Buffer): Fields | null {
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8'))
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : null
  } catch {
    return null
  }
}
