/** Whole replies of providers, read and written for the client before anything is charged: one that cannot be is a failed route. */
import { fail } from '../../platform/errors.ts'
import { stateKeyOf } from '../catalog/model.ts'
import { publicMessage } from '../providers/public-message.ts'
import { withModel } from '../wire/model-echo.ts'
import { plainUsage, type TokenUsage, usageFromOpenAi, usageToOpenAi } from '../wire/usage.ts'
import type { Failed, WholeAnswer } from './answer.ts'
import { tokensOfChars } from './estimate.ts'
import { replyOfEvents, saidChars } from './reply-shapes.ts'
import { toolCallsAreSound } from './tool-calls.ts'
import { echoFor, failed, replyContext, type Way } from './way.ts'

type Fields = Record<string, unknown>

const jsonType = { 'content-type': 'application/json; charset=utf-8' }

/** The reply as the client gets it. Throws `bad_request` where what the client itself sent cannot be written back. */
export function whole(bytes: Buffer, status: number, way: Way): WholeAnswer | Failed {
  const read = readWhole(bytes, status, way)
  if ('failure' in read) return read
  const { value } = read
  const { dialect, isRelay, context } = way
  const { request, kind } = context
  const { operation } = request
  if (request.needs.tools) noteToolCalls(value, way)
  return translated(status, way, () => {
    const reported = dialect.usageOf(operation, value)
    if (isRelay) {
      const usage = reported ?? estimateOf(dialect.reply(operation, value), way)
      return answerOf(way, usage, reported === null, named(completed(kind.complete(value, usage), bytes), way))
    }
    const hub = dialect.reply(operation, value)
    const usage = reported ?? estimateOf(hub, way)
    return answerOf(way, usage, reported === null, completed(kind.format.whole(hub, usage, replyContext(way, context.bill)), bytes))
  })
}

/** The reply as an object that answers something; what of status 200 is an error, or answers nothing, has failed. */
export function readWhole(bytes: Buffer, status: number, { attempt, dialect, context }: Way): { readonly value: Fields } | Failed {
  const { id } = attempt.route.provider
  const value = parseReply(bytes)
  if (value === null) return failed(attempt, status, `${id} answered ${status} with a body that is no JSON object`)
  const told = errorOfReply(value)
  if (told !== null) {
    const text = publicMessage(JSON.stringify({ error: told }), attempt.credential, context.request.native.body)
    return failed(attempt, status, `${id} answered ${status} with an error: ${text}`)
  }
  return dialect.answers(context.request.operation, value) ? { value } : failed(attempt, status, `${id} answered ${status} without an answer`)
}

/** A stream that was not asked for, all of it here, as the reply that was. */
export function streamAsWhole(bytes: Buffer, status: number, way: Way): WholeAnswer | Failed {
  const { attempt, dialect, context } = way
  return translated(status, way, () => {
    const decoder = dialect.decoder()
    const reply = replyOfEvents([...decoder.push(bytes), ...decoder.end()])
    if (reply === null) return failed(attempt, status, `${attempt.route.provider.id} answered with a stream that does not reach its end`)
    const reported = usageFromOpenAi(reply['usage'])
    const usage = reported ?? estimateOf(reply, way)
    const made = context.kind.format.whole({ ...reply, usage: usageToOpenAi(usage) }, usage, replyContext(way, context.bill))
    return answerOf(way, usage, reported === null, Buffer.from(JSON.stringify(made)))
  })
}

/** What the client's own body has in it cannot be the route's fault; everything else that cannot be translated is. */
export function translated<T>(status: number, { attempt, context }: Way, write: () => T): T | Failed {
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

function answerOf({ attempt, headers }: Way, usage: TokenUsage, estimated: boolean, body: Uint8Array): WholeAnswer {
  return { kind: 'whole', attempt, headers: { ...headers, ...jsonType }, usage, estimated, body }
}

/** What is counted where the provider told nothing: the same as of a stream that says the same. */
function estimateOf(hub: Readonly<Fields>, { context: { request, kind } }: Way): TokenUsage {
  return plainUsage(request.promptTokens, kind.hasOutput ? tokensOfChars(saidChars(hub)) : 0)
}

/** What the reply's tool calls are like tells routing whom to trust with tools. */
function noteToolCalls(reply: Fields, { attempt: { route }, context: { deps } }: Way): void {
  const sound = route.dialect === 'openai' ? toolCallsAreSound(reply) : null
  if (sound !== null) deps.observer.calledTools(stateKeyOf(route), sound)
}

/** In the hub format only: replies of the other formats are relayed byte for byte. */
function named(bytes: Buffer, way: Way): Buffer {
  const echo = way.context.kind.format.id === 'openai' ? echoFor(way) : null
  return echo === null ? bytes : withModel(bytes, echo)
}

const completed = (value: Fields | null, bytes: Buffer): Buffer => (value === null ? bytes : Buffer.from(JSON.stringify(value)))

const answerNames = ['choices', 'content', 'output', 'candidates', 'data'] as const

/** The error that some providers put into a reply of status 200; null in one that answers something. */
function errorOfReply(reply: Fields): unknown {
  const { error } = reply
  if (error === undefined || error === null) return null
  // A response of that status has said nothing, though it has its list of items.
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
