/** Attempts of chat-like kinds and embeddings: one request in the provider's dialect, one reply or stream back. */
import type { OutboundReply } from '../../platform/upstream-body.ts'
import type { Target, UpstreamRequest } from '../providers/dialect.ts'
import type { Attempt } from '../routing/plan.ts'
import { withholdsUsage } from '../wire/chat-format.ts'
import { brHeader, headerValue } from '../wire/response-headers.ts'
import type { Failed, Performed } from './answer.ts'
import { ChatRelayPassage } from './chat-relay-passage.ts'
import { decodedReply } from './decoded-reply.ts'
import type { PerformContext, Performer } from './kinds/kind.ts'
import { RelayPassage, type StreamPassage, TranslatedPassage } from './passage.ts'
import { type Prepared, type PreparedNative, prepare, prepareNative } from './prepare.ts'
import { isRelayed, readRefusal, relayedHeaders } from './refusals.ts'
import { eventsOfReply, ReadyEvents } from './reply-shapes.ts'
import { send } from './send.ts'
import { echoFor, failed, replyContext, type Way } from './way.ts'
import { readWhole, streamAsWhole, translated, whole } from './whole-reply.ts'
import { written } from './written.ts'

/** Largest whole reply that is taken from a provider. */
const replyMaxBytes = 64 * 1024 * 1024
/** The same of a server that somebody has registered: reading a reply takes the time of all callers. */
const ownReplyMaxBytes = 8 * 1024 * 1024

/** Makes one attempt of a chat, messages, responses or embeddings call. */
export const performChat: Performer = (attempt, context) => {
  const { request } = context
  const dialect = context.deps.dialectOf(attempt.route.dialect)
  const isRelay = request.native.format === attempt.route.dialect
  const { relay } = dialect
  if (isRelay && relay !== null) {
    const prepared = prepareNative(request, attempt, context)
    const goOn = ({ native, headers, dropped }: PreparedNative): Promise<Performed> => {
      const outgoing = written(() => relay(native, targetOf(attempt, request.forwarded)))
      return exchange(outgoing, { attempt, dialect, isRelay, headers: withDropped(headers, dropped, outgoing.dropped, context), context })
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

function targetOf({ route, model, credential, forwarded: forwards }: Attempt, forwarded: PerformContext['request']['forwarded']): Target {
  return { provider: route.provider, upstreamModel: route.upstreamModel, credential, forwarded: forwards === true ? forwarded : null, traits: model }
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

/** A whole reply where a stream was asked for, as the stream. */
async function wholeAsStream(reply: OutboundReply, way: Way): Promise<Performed> {
  const { attempt, dialect, context } = way
  const { id } = attempt.route.provider
  if (!isOfType(reply, 'application/json')) {
    reply.body.destroy()
    return failed(attempt, reply.status, `${id} answered a stream request with ${String(reply.headers['content-type'] ?? 'no content-type')}`)
  }
  const read = readWhole(await bytesOf(reply, attempt), reply.status, way)
  if ('failure' in read) return read
  const begun = translated(reply.status, way, () => {
    const events = new ReadyEvents(eventsOfReply(dialect.reply('chat', read.value)))
    const passage = new TranslatedPassage(events, context.kind.format.writer(replyContext(way, context.bill)), context.request.promptTokens)
    return { first: passage.push(noBytes), passage }
  })
  if ('failure' in begun) return begun
  const rest = reply.body[Symbol.asyncIterator]()
  return { answer: { kind: 'stream', attempt, headers: way.headers, ...begun, rest, body: reply.body }, replyHeaders: reply.headers }
}

const noBytes = Buffer.alloc(0)

/** A stream counts as begun when its first chunk is here and is no error: until then another route can still take over. */
async function firstOfStream(reply: OutboundReply, way: Way): Promise<Performed> {
  const { attempt } = way
  const { id } = attempt.route.provider
  const rest = reply.body[Symbol.asyncIterator]()
  const passage = passageOf(way)
  let read = await rest.next()
  let first = read.done ? null : pushed(passage, read.value, reply, way)
  // Half a line says nothing yet: it may be the provider's error.
  while (first === null && !read.done && !passage.failed && !passage.finished) {
    read = await rest.next()
    first = read.done ? null : pushed(passage, read.value, reply, way)
  }
  if (first !== null && 'failure' in first) return first
  if (read.done || passage.failed) {
    reply.body.destroy()
    return failed(attempt, reply.status, `${id} ended the stream before the first chunk`)
  }
  return { answer: { kind: 'stream', attempt, headers: way.headers, first, rest, body: reply.body, passage }, replyHeaders: reply.headers }
}

/** What the chunk has become for the client; a stream that cannot be translated from the beginning is a failed route. */
function pushed(passage: StreamPassage, chunk: Uint8Array, { status, body }: OutboundReply, way: Way): Uint8Array | Failed | null {
  let isRead = false
  try {
    const made = translated(status, way, () => ({ bytes: passage.push(chunk) }))
    isRead = 'bytes' in made
    return 'bytes' in made ? made.bytes : made
  } finally {
    if (!isRead) body.destroy()
  }
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
