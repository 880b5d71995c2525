/** Attempts of chat-like kinds and embeddings: one request in the provider's dialect, one reply or stream back. */
import { fail } from '../../platform/errors.ts'
import type { OutboundReply } from '../../platform/upstream-body.ts'
import { stateKeyOf } from '../catalog/model.ts'
import type { Dialect, Target, UpstreamRequest } from '../providers/dialect.ts'
import { publicMessage } from '../providers/public-message.ts'
import type { Attempt } from '../routing/plan.ts'
import { withholdsUsage } from '../wire/chat-format.ts'
import type { ReplyContext } from '../wire/client-format.ts'
import { echoOf, withModel } from '../wire/model-echo.ts'
import { brHeader, headerValue } from '../wire/response-headers.ts'
import { plainUsage, usageFromOpenAi, usageToOpenAi } from '../wire/usage.ts'
import type { Failed, Performed, WholeAnswer } from './answer.ts'
import { ChatRelayPassage } from './chat-relay-passage.ts'
import { decodedReply } from './decoded-reply.ts'
import { tokensOfChars } from './estimate.ts'
import type { PerformContext, Performer } from './kinds/kind.ts'
import { RelayPassage, type StreamPassage, TranslatedPassage } from './passage.ts'
import { type Prepared, type PreparedNative, prepare, prepareNative } from './prepare.ts'
import { isRelayed, readRefusal, relayedHeaders } from './refusals.ts'
import { eventsOfReply, ReadyEvents, replyOfEvents } from './reply-shapes.ts'
import { send } from './send.ts'
import { toolCallsAreSound } from './tool-calls.ts'

/** Largest whole reply that is taken from a provider. */
const replyMaxBytes = 64 * 1024 * 1024
/** The same of a server that somebody has registered: reading a reply takes the time of all callers. */
const ownReplyMaxBytes = 8 * 1024 * 1024

/** How the reply of an attempt goes to the client. */
interface Way {
  readonly attempt: Attempt
  readonly dialect: Dialect
  /** The client speaks the provider's format: bytes go through as they are. */
  readonly isRelay: boolean
  readonly headers: Readonly<Record<string, string>>
  readonly context: PerformContext
}

/** Makes one attempt of a chat, messages, responses or embeddings call. */
export const performChat: Performer = (attempt, context) => {
  const { request } = context
  const dialect = context.deps.dialectOf(attempt.route.dialect)
  const isRelay = request.native.format === attempt.route.dialect
  const { relay } = dialect
  if (isRelay && relay !== null) {
    const prepared = prepareNative(request, attempt, context)
    const goOn = ({ native, headers }: PreparedNative): Promise<Performed> => {
      const outgoing = written(() => relay(native, targetOf(attempt, request.forwarded)))
      return exchange(outgoing, { attempt, dialect, isRelay, headers: withDropped(headers, noNames, outgoing.dropped, context), context })
    }
    return prepared instanceof Promise ? prepared.then(goOn) : goOn(prepared)
  }
  const prepared = prepare(request, attempt, context)
  const go = ({ hub, headers }: Prepared): Promise<Performed> => {
    const outgoing = written(() => dialect.request(hub, targetOf(attempt, request.forwarded)))
    return exchange(outgoing, { attempt, dialect, isRelay, headers: withDropped(headers, hub.dropped, outgoing.dropped, context), context })
  }
  return prepared instanceof Promise ? prepared.then(go) : go(prepared)
}

const noNames: readonly string[] = Object.freeze([])

function targetOf({ route, model, credential, forwarded: forwards }: Attempt, forwarded: PerformContext['request']['forwarded']): Target {
  return { provider: route.provider, upstreamModel: route.upstreamModel, credential, forwarded: forwards === true ? forwarded : null, traits: model }
}

/** A body that cannot be written is its sender's mistake and says nothing about the route. Throws `bad_request`. */
function written<T>(write: () => T): T {
  try {
    return write()
  } catch (cause) {
    throw cause instanceof RangeError ? fail('bad_request', { message: 'The body is nested too deeply.', cause }) : cause
  }
}

/** Names what could not be carried, once each, as the client calls it. */
function withDropped(
  headers: Readonly<Record<string, string>>,
  byClient: readonly string[],
  byDialect: readonly string[],
  { kind, request }: PerformContext,
): Readonly<Record<string, string>> {
  if (byClient.length === 0 && byDialect.length === 0) return headers
  const names = byDialect.map(name => kind.format.nameOf?.(name, request.native.body) ?? name)
  return { ...headers, [brHeader.droppedParams]: headerValue([...new Set([...byClient, ...names])].join(',')) }
}

async function exchange(outgoing: UpstreamRequest, way: Way): Promise<Performed> {
  const { attempt, dialect, context } = way
  const reply = decodedReply(await send(attempt, outgoing, context.signal, context.deps))
  if (reply.status < 200 || reply.status >= 300) return readRefusal(reply, attempt, dialect, context.request)
  const onward = isRelayed(attempt, context.request) ? { ...way, headers: { ...relayedHeaders(reply.headers), ...way.headers } } : way
  if (context.request.stream) return isOfType(reply, 'text/event-stream') ? firstOfStream(reply, onward) : wholeAsStream(reply, onward)
  const read = bytesOf(reply, attempt)
  const bytes = read instanceof Promise ? await read : read
  const found =
    context.request.operation === 'chat' && isOfType(reply, 'text/event-stream')
      ? streamAsWhole(bytes, reply.status, onward)
      : whole(bytes, reply.status, onward)
  return 'failure' in found ? found : { answer: found, replyHeaders: reply.headers }
}

const isOfType = ({ headers }: OutboundReply, type: string): boolean => String(headers['content-type'] ?? '').startsWith(type)

/** All of a reply; at once when it is here. */
function bytesOf({ body }: OutboundReply, { route }: Attempt): Buffer | Promise<Buffer> {
  return body.buffer(route.provider.userGiven === true ? ownReplyMaxBytes : replyMaxBytes)
}

const jsonType = { 'content-type': 'application/json; charset=utf-8' }

function whole(bytes: Buffer, status: number, way: Way): WholeAnswer | Failed {
  const { attempt, dialect, isRelay, headers, context } = way
  const { request, kind } = context
  const value = parseReply(bytes)
  if (value === null) return failed(attempt, status, `${attempt.route.provider.id} answered ${status} with a body that is no JSON object`)
  const refused = refusalIn(value, status, way)
  if (refused !== null) return refused
  const { operation } = request
  if (request.needs.tools) noteToolCalls(value, way)
  const estimate = () => plainUsage(request.promptTokens, kind.hasOutput ? tokensOfChars(bytes.length) : 0)
  return {
    kind: 'whole',
    attempt,
    headers: { ...headers, ...jsonType },
    usage: dialect.usageOf(operation, value),
    estimate,
    body(usage, bill) {
      if (isRelay) return named(completed(kind.complete(value, usage), bytes), way)
      return completed(kind.format.whole(dialect.reply(operation, value), usage, replyContext(way, bill)), bytes)
    },
  }
}

/** What a reply of status 200 comes to that is an error. */
function refusalIn(value: Record<string, unknown>, status: number, { attempt, context }: Way): Failed | null {
  const told = errorOfReply(value)
  if (told === null) return null
  const text = publicMessage(JSON.stringify({ error: told }), attempt.credential, context.request.native.body)
  return failed(attempt, status, `${attempt.route.provider.id} answered ${status} with an error: ${text}`)
}

/** A stream that was not asked for, all of it here, as the reply that was. */
function streamAsWhole(bytes: Buffer, status: number, way: Way): WholeAnswer | Failed {
  const { attempt, dialect, headers, context } = way
  const decoder = dialect.decoder()
  const reply = replyOfEvents([...decoder.push(bytes), ...decoder.end()])
  if (reply === null) return failed(attempt, status, `${attempt.route.provider.id} answered with a stream that does not reach its end`)
  return {
    kind: 'whole',
    attempt,
    headers: { ...headers, ...jsonType },
    usage: usageFromOpenAi(reply['usage']),
    estimate: () => plainUsage(context.request.promptTokens, tokensOfChars(bytes.length)),
    body: (usage, bill) => Buffer.from(JSON.stringify(context.kind.format.whole({ ...reply, usage: usageToOpenAi(usage) }, usage, replyContext(way, bill)))),
  }
}

/** A whole reply where a stream was asked for, as the stream. */
async function wholeAsStream(reply: OutboundReply, way: Way): Promise<Performed> {
  const { attempt, dialect, context } = way
  const { id } = attempt.route.provider
  if (!isOfType(reply, 'application/json')) {
    reply.body.destroy()
    return failed(attempt, reply.status, `${id} answered a stream request with ${String(reply.headers['content-type'] ?? 'no content-type')}`)
  }
  const value = parseReply(await bytesOf(reply, attempt))
  if (value === null) return failed(attempt, reply.status, `${id} answered ${reply.status} with a body that is no JSON object`)
  const refused = refusalIn(value, reply.status, way)
  if (refused !== null) return refused
  const passage = new TranslatedPassage(
    new ReadyEvents(eventsOfReply(dialect.reply('chat', value))),
    context.kind.format.writer(replyContext(way, context.bill)),
    context.request.promptTokens,
  )
  const first = passage.push(noBytes)
  const rest = reply.body[Symbol.asyncIterator]()
  return { answer: { kind: 'stream', attempt, headers: way.headers, first, rest, body: reply.body, passage }, replyHeaders: reply.headers }
}

const noBytes = Buffer.alloc(0)

/** What the reply's tool calls are like tells routing whom to trust with tools. */
function noteToolCalls(reply: Record<string, unknown>, { attempt: { route }, context: { deps } }: Way): void {
  const sound = route.dialect === 'openai' ? toolCallsAreSound(reply) : null
  if (sound !== null) deps.observer.calledTools(stateKeyOf(route), sound)
}

/** In the hub format only: replies of the other formats are relayed byte for byte. */
function named(bytes: Buffer, way: Way): Buffer {
  const echo = way.context.kind.format.id === 'openai' ? echoFor(way) : null
  return echo === null ? bytes : withModel(bytes, echo)
}

/** What the reply calls the model: its id in the catalog, where the provider has another name for it. */
function echoFor({ attempt: { route } }: Way): Buffer | null {
  if (route.upstreamModel === route.modelId) return null
  const known = echoes.get(route)
  if (known !== undefined) return known
  const made = echoOf(route.modelId)
  echoes.set(route, made)
  return made
}

const echoes = new WeakMap<Way['attempt']['route'], Buffer>()

const completed = (value: Record<string, unknown> | null, bytes: Buffer): Buffer => (value === null ? bytes : Buffer.from(JSON.stringify(value)))

const answerNames = ['choices', 'content', 'output', 'candidates', 'data'] as const

/** The error that some providers put into a reply of status 200; null in one that answers something. */
function errorOfReply(reply: Record<string, unknown>): unknown {
  const { error } = reply
  if (error === undefined || error === null) return null
  // A response of that status has said nothing, though it has its list of items.
  return reply['status'] !== 'failed' && answerNames.some(name => Array.isArray(reply[name])) ? null : error
}

function parseReply(bytes: Buffer): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8'))
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : null
  } catch {
    return null
  }
}

/** A stream counts as begun when its first chunk is here and is no error: until then another route can still take over. */
async function firstOfStream(reply: OutboundReply, way: Way): Promise<Performed> {
  const { attempt } = way
  const { id } = attempt.route.provider
  const rest = reply.body[Symbol.asyncIterator]()
  const passage = passageOf(way)
  let read = await rest.next()
  let first = read.done ? null : passage.push(read.value)
  // Half a line says nothing yet: it may be the provider's error.
  while (first === null && !read.done && !passage.failed && !passage.finished) {
    read = await rest.next()
    first = read.done ? null : passage.push(read.value)
  }
  if (read.done || passage.failed) {
    reply.body.destroy()
    return failed(attempt, reply.status, `${id} ended the stream before the first chunk`)
  }
  return { answer: { kind: 'stream', attempt, headers: way.headers, first, rest, body: reply.body, passage }, replyHeaders: reply.headers }
}

function passageOf(way: Way): StreamPassage {
  const { dialect, isRelay, context } = way
  const { kind } = context
  const { promptTokens } = context.request
  const replying = replyContext(way, context.bill)
  if (isRelay && kind.format.id !== 'openai') return new RelayPassage(dialect.tap(), kind.format, replying)
  if (isRelay) return new ChatRelayPassage(kind.format, replying, { withholdsUsage: withholdsUsage(context.request.native.body), echo: echoFor(way) })
  return new TranslatedPassage(dialect.decoder(), kind.format.writer(replying), promptTokens)
}

function replyContext({ attempt, context }: Way, bill: PerformContext['bill']): ReplyContext {
  const { request, deps } = context
  return {
    model: attempt.route.modelId,
    request: request.native.body,
    promptTokens: request.promptTokens,
    nowSeconds: Math.floor(deps.clock.nowMs() / 1000),
    newId: prefix => `${prefix}${deps.ids.uuidv7(deps.clock.nowMs()).replaceAll('-', '')}`,
    bill,
  }
}

const failed = (attempt: Attempt, status: number, message: string): Failed => ({ kind: 'failed', attempt, failure: { kind: 'transient', status }, message })
