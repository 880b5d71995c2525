/** Attempts of chat, messages, responses and embeddings calls: one request in the provider's dialect, and one reply or stream back. */
import { GatewayError } from '../../../platform/errors.ts'
import type { HeldReply, RoomOfReply } from '../../../platform/outbound/held-replies.ts'
import { BodyTooLargeError, type OutboundReply } from '../../../platform/outbound/upstream-body.ts'
import { framesOf } from '../../providers/clouds/event-frames.ts'
import type { Target, UpstreamRequest } from '../../providers/dialect.ts'
import { publicMessage } from '../../providers/public-message.ts'
import type { Attempt } from '../../routing/plan.ts'
import { withholdsUsage } from '../../wire/chat/chat-format.ts'
import { asItIs, withoutNumberLists } from '../../wire/json/number-lists.ts'
import { brHeader, headerValue } from '../../wire/response-headers.ts'
import { ownEventMaxBytes } from '../../wire/sse/sse-events.ts'
import type { PerformContext, Performer } from '../kinds/kind.ts'
import type { ParsedRequest } from '../kinds/request.ts'
import type { Failed, Performed } from '../replies/answer.ts'
import { decodedReply } from '../replies/decoded-reply.ts'
import { noRoomError } from '../replies/no-room.ts'
import { eventsOfReply, ReadyEvents } from '../replies/reply-shapes.ts'
import { replyWait } from '../replies/reply-wait.ts'
import { priceAsNamed } from '../replies/served-model.ts'
import { readInTurn, shortReplyBytes, shortWhole, streamAsWhole, translated, translatedOrBilled, whole } from '../replies/whole-reply.ts'
import { ChatRelayAdapter } from '../stream/chat-relay-adapter.ts'
import { FramedAdapter } from '../stream/framed-adapter.ts'
import { RelayAdapter, type StreamAdapter, TranslatedAdapter } from '../stream/stream-adapter.ts'
import { type AttemptContext, echoFor, failed, replyContext } from './attempt-context.ts'
import { type Prepared, type PreparedNative, prepare, prepareNative } from './prepare.ts'
import { isRelayed, readRefusal, relayedHeaders } from './refusals.ts'
import { send } from './send.ts'
import { written } from './written.ts'
import { writtenInTurns } from './written-slices.ts'

/** The largest whole chat reply from a provider, in bytes: as much text as a stream may have. While a reply is read, all other callers wait. */
const chatReplyMaxBytes = 32 * 1024 * 1024
/** The largest embeddings reply, in bytes. Its numbers are not parsed. */
const embeddingsReplyMaxBytes = 64 * 1024 * 1024
/** The largest reply of an own server, in bytes. While a reply is read, all other callers wait. */
const ownReplyMaxBytes = 8 * 1024 * 1024

/**
 * Makes one attempt of a chat, messages or responses call. Admission has checked that the first route can express the request. When only a later
 * route cannot, that route has failed and the call goes on.
 */
export const performChat: Performer = (attempt, context) => {
  try {
    context.request.checkFor?.(attempt)
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    const message = `${attempt.route.provider.id} was not called: ${error.message}`
    return Promise.resolve({ kind: 'failed', attempt, failure: { kind: 'client', status: error.status }, message })
  }
  return performInDialect(attempt, context)
}

/**
 * Makes one attempt in the dialect of its route. It does not check whether the route can express the request: embeddings calls need no such check, and
 * `performChat` has made it.
 */
export const performInDialect: Performer = (attempt, context) => {
  const { request } = context
  const dialect = context.deps.dialectOf(attempt.route.dialect)
  const isRelay = request.native.format === attempt.route.dialect
  const { relay } = dialect
  if (isRelay && relay !== null) {
    const prepared = prepareNative(request, attempt, context)
    const goOn = ({ native, headers, dropped }: PreparedNative): Promise<Performed> => {
      const send = (outgoing: UpstreamRequest): Promise<Performed> =>
        exchange(outgoing, { attempt, dialect, isRelay, headers: withDropped(headers, dropped, outgoing.dropped, context), context })
      return writtenInTurn(() => relay(native, targetOf(attempt, context)), context, send)
    }
    return prepared instanceof Promise ? prepared.then(goOn) : goOn(prepared)
  }
  const prepared = prepare(request, attempt, context)
  const go = ({ hub, headers }: Prepared): Promise<Performed> => {
    const send = (outgoing: UpstreamRequest): Promise<Performed> =>
      exchange(outgoing, { attempt, dialect, isRelay, headers: withDropped(headers, hub.dropped, outgoing.dropped, context), context })
    return writtenInTurn(() => dialect.request(hub, targetOf(attempt, context)), context, send)
  }
  return prepared instanceof Promise ? prepared.then(go) : go(prepared)
}

/**
 * Writes a request and sends it. A heavy request is made in one turn, and its JSON is written in others. A request with numbers to restore is
 * encoded where it is sent.
 */
function writtenInTurn(
  write: () => UpstreamRequest,
  { signal, deps: { inTurn, exact } }: PerformContext,
  send: (outgoing: UpstreamRequest) => Promise<Performed>,
): Promise<Performed> {
  return inTurn === undefined ? send(written(write)) : writtenInTurns(write, exact !== undefined, work => inTurn(work, signal)).then(send)
}

function targetOf({ route, model, credential, forwarded: forwards }: Attempt, { request, deps }: PerformContext): Target {
  const forwarded = forwards === true ? request.forwarded : null
  const target = { provider: route.provider, upstreamModel: route.upstreamModel, credential, forwarded, traits: model }
  return deps.inTurn === undefined ? target : { ...target, writesLater: true }
}

/** Adds the header with the names of the dropped parameters, once each, as the client's format names them. */
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

/** Sends the request and reads the reply. It is no async function, because those cost more than one `then`. */
function exchange(outgoing: UpstreamRequest, attemptContext: AttemptContext): Promise<Performed> {
  const { attempt, context } = attemptContext
  const wait = replyWait(context.kind, context.request, attempt, context.deps.timeouts)
  return send(attempt, outgoing, context.signal, context.deps, wait?.ms).then(reply => received(reply, attemptContext))
}

function received(encoded: OutboundReply, attemptContext: AttemptContext): Performed | Promise<Performed> {
  const { attempt, dialect, context } = attemptContext
  const reply = decodedReply(encoded, attempt.route.provider.userGiven === true)
  if (reply.status < 200 || reply.status >= 300) return readRefusal(reply, attempt, dialect, context.request)
  const onward = isRelayed(attempt, context.request)
    ? { ...attemptContext, headers: { ...relayedHeaders(reply.headers), ...attemptContext.headers } }
    : attemptContext
  if (context.request.stream && attempt.route.provider.cloud !== undefined) {
    const frames = framesOf(attempt.route.provider, reply.headers['content-type'], attempt.byok)
    if (frames !== null) return beginStream(reply, { ...onward, frames })
  }
  const short = arrivedReply(reply, onward)
  if (short !== null) return short
  if (context.request.stream && isOfType(reply, 'text/event-stream')) return beginStream(reply, onward)
  return readInRoom(reply, onward)
}

/** Reads a whole reply while there is room for it. */
function readInRoom(reply: OutboundReply, attemptContext: AttemptContext): Promise<Performed> {
  const { request, orgId, deps } = attemptContext.context
  const read = request.stream ? wholeAsStream : wholeReply
  return deps.heldReplies.run(orgId, room => read(reply, attemptContext, room))
}

/** Returns the answer of a short whole reply that has arrived completely. Null for any other reply. */
function arrivedReply(reply: OutboundReply, attemptContext: AttemptContext): Performed | null {
  const { stream, operation } = attemptContext.context.request
  if (stream || operation !== 'chat' || isOfType(reply, 'text/event-stream')) return null
  const bytes = reply.body.arrived(shortReplyBytes)
  if (bytes === null) return null
  const found = shortWhole(bytes, reply.status, attemptContext)
  return 'failure' in found ? found : { answer: found, replyHeaders: reply.headers }
}

async function wholeReply(reply: OutboundReply, attemptContext: AttemptContext, room: RoomOfReply): Promise<Performed> {
  const { attempt, context } = attemptContext
  const read = bytesOf(reply, attempt, context.request.operation, room)
  const bytes = read instanceof Promise ? await read : read
  const looked = context.request.operation === 'embeddings' ? withoutNumberLists(bytes) : asItIs(bytes)
  const json = looked instanceof Promise ? await looked : looked
  const found =
    context.request.operation === 'chat' && isOfType(reply, 'text/event-stream')
      ? await streamAsWhole(bytes, reply.status, attemptContext)
      : await readInTurn(json.lean, reply.status, attemptContext, value => whole(json, value, reply.status, attemptContext))
  return 'failure' in found ? found : { answer: found, replyHeaders: reply.headers }
}

const isOfType = ({ headers }: OutboundReply, type: string): boolean => String(headers['content-type'] ?? '').startsWith(type)

/** Returns the whole body. The result is not a promise when the body has already arrived. */
function bytesOf({ body }: OutboundReply, { route }: Attempt, operation: ParsedRequest['operation'], room: RoomOfReply): Buffer | Promise<Buffer> {
  const maxBytes = operation === 'embeddings' ? embeddingsReplyMaxBytes : chatReplyMaxBytes
  return body.buffer(route.provider.userGiven === true ? ownReplyMaxBytes : maxBytes, room)
}

/** Returns a whole reply as the stream that was requested. */
async function wholeAsStream(reply: OutboundReply, attemptContext: AttemptContext, room: RoomOfReply): Promise<Performed> {
  const { attempt, dialect, context } = attemptContext
  const { id } = attempt.route.provider
  if (!isOfType(reply, 'application/json')) {
    reply.body.destroy()
    return failed(attempt, reply.status, `${id} answered a stream request with ${String(reply.headers['content-type'] ?? 'no content-type')}`)
  }
  const bytes = await bytesOf(reply, attempt, 'chat', room)
  const begun = await readInTurn(bytes, reply.status, attemptContext, value => {
    priceAsNamed(value['model'], attemptContext)
    return translatedOrBilled(value, bytes.length, reply.status, attemptContext, () => {
      const events = new ReadyEvents(eventsOfReply(dialect.reply('chat', value)))
      const replying = replyContext(attemptContext, context.bill)
      const adapter = new TranslatedAdapter(
        events,
        context.kind.format.writer(replying),
        context.request.promptTokens,
        attempt.route.provider.userGiven === true,
        replying,
      )
      return { first: adapter.push(noBytes), adapter }
    })
  })
  if ('failure' in begun) return begun
  const rest = reply.body[Symbol.asyncIterator]()
  const held = context.deps.heldReplies.open(context.orgId)
  return { answer: { kind: 'stream', attempt, headers: attemptContext.headers, ...begun, rest, body: reply.body, held }, replyHeaders: reply.headers }
}

const noBytes = Buffer.alloc(0)

async function beginStream(reply: OutboundReply, attemptContext: AttemptContext): Promise<Performed> {
  const { deps, orgId } = attemptContext.context
  const held = deps.heldReplies.open(orgId)
  try {
    return await firstOfStream(reply, attemptContext, held)
  } finally {
    // The relay counts the adapter's kept bytes again with the next bytes of the stream.
    held.release()
  }
}

/** Reads a stream up to the first output for the client that is not a comment, ping or error. Until then another route can still serve the call. */
async function firstOfStream(reply: OutboundReply, attemptContext: AttemptContext, held: HeldReply): Promise<Performed> {
  const adapter = adapterOf(attemptContext)
  const begin: { first: Uint8Array | Failed | null } = { first: null }
  // Half a line is not enough to begin, because it may be the provider's error.
  const end = await reply.body.flow(chunk => {
    begin.first = pushed(adapter, chunk, reply, attemptContext)
    if (begin.first !== null || adapter.failed || adapter.finished) return false
    const lacking = held.keeps(adapter.heldBytes)
    if (lacking === null) return true
    reply.body.destroy()
    throw noRoomError(lacking)
  }, attemptContext.context.orgId)
  let { first } = begin
  if (first !== null && 'failure' in first) return first
  if (end === 'ended' && !adapter.failed) {
    const { bytes, complete } = adapter.end()
    if (complete) first = bytes
  }
  // What is beyond a bound of this gateway is made and billed: another route would make it again.
  // The provider has read the prompt and bills it, although the gateway reads nothing of the stream.
  if (adapter.refused !== null && adapter.outputChars === 0 && attemptContext.attempt.route.provider.userGiven !== true) {
    reply.body.destroy()
    throw new BodyTooLargeError(adapter.refused.message)
  }
  const isRefused = adapter.refused !== null && adapter.outputChars > 0
  if ((adapter.failed && !isRefused) || first === null) {
    reply.body.destroy()
    return failed(attemptContext.attempt, reply.status, withoutBegin(adapter, attemptContext))
  }
  return {
    answer: {
      kind: 'stream',
      attempt: attemptContext.attempt,
      headers: attemptContext.headers,
      first,
      rest: reply.body[Symbol.asyncIterator](),
      body: reply.body,
      adapter,
      held,
    },
    replyHeaders: reply.headers,
  }
}

function withoutBegin({ failed: hasFailed, fault }: StreamAdapter, { attempt, context }: AttemptContext): string {
  const { id } = attempt.route.provider
  if (!hasFailed) return `${id} ended the stream before the first chunk`
  const said = fault === null ? '' : publicMessage(fault, attempt.credential, context.request.native.body)
  return `${id} ended the stream with an error before the first chunk${said === '' ? '' : `: ${said}`}`
}

/** Returns the output of a chunk for the client. A stream that cannot be translated from its beginning is a failure of the route. */
function pushed(adapter: StreamAdapter, chunk: Uint8Array, { status, body }: OutboundReply, attemptContext: AttemptContext): Uint8Array | Failed | null {
  let isRead = false
  try {
    const made = translated(status, attemptContext, () => ({ bytes: adapter.push(chunk) }))
    isRead = 'bytes' in made
    return 'bytes' in made ? made.bytes : made
  } finally {
    if (!isRead) body.destroy()
  }
}

function adapterOf(attemptContext: AttemptContext): StreamAdapter {
  const { frames } = attemptContext
  const adapter = plainAdapterOf(attemptContext)
  return frames === undefined ? adapter : new FramedAdapter(frames, adapter)
}

function plainAdapterOf(attemptContext: AttemptContext): StreamAdapter {
  const { dialect, isRelay, context } = attemptContext
  const { kind } = context
  const { promptTokens } = context.request
  const replying = replyContext(attemptContext, context.bill)
  if (isRelay && kind.format.id !== 'openai') return new RelayAdapter(dialect.tap(), kind.format, replying)
  const longest = attemptContext.attempt.route.provider.userGiven === true ? ownEventMaxBytes : undefined
  const withholds = withholdsUsage(context.request.native.body)
  if (isRelay)
    return new ChatRelayAdapter(kind.format, replying, {
      withholdsUsage: withholds,
      echo: echoFor(attemptContext),
      ...(longest === undefined ? {} : { eventMaxBytes: longest }),
    })
  return new TranslatedAdapter(dialect.decoder(longest), kind.format.writer(replying), promptTokens, longest !== undefined, replying)
}
