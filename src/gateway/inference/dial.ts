import type { CancelSignal } from '../../platform/cancellation.ts'
import { fail, GatewayError } from '../../platform/errors.ts'
import type { OutboundReply, UpstreamBody } from '../../platform/upstream-body.ts'
import { stateKeyOf } from '../catalog/model.ts'
import type { Dialect, Failure, HubRequest, StreamTap, Target, UpstreamRequest } from '../providers/dialect.ts'
import { publicMessage } from '../providers/public-message.ts'
import type { Attempt, Plan } from '../routing/plan.ts'
import type { InferenceDeps } from './deps.ts'
import type { ParsedRequest } from './kinds/kind.ts'
import type { Meter } from './meter.ts'

/** Largest whole reply that is taken from a provider. */
const replyMaxBytes = 64 * 1024 * 1024
/** The same of a server that somebody has registered: reading a reply takes the time of all callers. */
const ownReplyMaxBytes = 8 * 1024 * 1024
/** Largest error body that is read. */
const errorBodyMaxBytes = 1024 * 1024

/** What a dial came to. */
export type Answer =
  | { readonly kind: 'whole'; readonly attempt: Attempt; readonly dialect: Dialect; readonly bytes: Buffer; readonly value: Record<string, unknown> }
  /** The first chunk has arrived and is in the tap. */
  | StreamAnswer
  | ClientError

/** The provider says that the request itself is at fault: goes to the caller as it is. */
interface ClientError {
  readonly kind: 'client-error'
  readonly attempt: Attempt
  readonly status: number
  readonly bytes: Buffer
}

export interface StreamAnswer {
  readonly kind: 'stream'
  readonly attempt: Attempt
  readonly first: Uint8Array
  readonly rest: AsyncIterator<Uint8Array>
  readonly body: UpstreamBody
  readonly tap: StreamTap
  /** Tells routing that the route has served; called at the end of a stream that the provider did not break off. */
  readonly served: () => void
}

interface Failed {
  readonly attempt: Attempt
  readonly failure: Failure
  /** What the provider said, for the caller; credentials taken out. */
  readonly message: string
}

/**
 * Dials the plan's attempts in order until one answers. A client error stops it; everything else goes on to the next attempt. Nothing
 * has been sent to the caller when this runs, so failover is invisible; after the first byte there is none.
 * Throws `all_routes_failed`, `provider_unavailable_billing`, or the signal's reason.
 */
export async function dial(plan: Plan, request: ParsedRequest, meter: Meter, signal: CancelSignal, recheck: () => void, deps: InferenceDeps): Promise<Answer> {
  const failures: Failed[] = []
  for (const attempt of plan.attempts) {
    recheck()
    signal.throwIfAborted()
    await meter.opens(attempt)
    // The record is written at the end of this turn of the event loop; a revoke may have come meanwhile.
    recheck()
    signal.throwIfAborted()
    meter.dials()
    const dialect = deps.dialectOf(attempt.route.provider.dialect)
    const startedMs = deps.clock.monotonicMs()
    const outgoing = requestOf(dialect, request.hub, {
      provider: attempt.route.provider,
      upstreamModel: attempt.route.upstreamModel,
      credential: attempt.credential,
    })
    let result: Answer | Failed
    try {
      const reply = await send(attempt, outgoing, signal, deps)
      const read = answerOf(reply, attempt, dialect, request)
      const found = read instanceof Promise ? await read : read
      result = 'failure' in found || found.kind === 'client-error' ? found : begun(found, reply, deps.clock.monotonicMs() - startedMs, meter, deps)
    } catch (error) {
      // A call that was cut or abandoned is not the provider's failure.
      if (signal.aborted) throw signal.reason
      result = unreachable(attempt, error)
    }
    if (!('failure' in result)) return result
    failures.push(result)
    note(result, deps)
  }
  throw allFailed(failures)
}

function send(
  { route: { provider } }: Attempt,
  { method, url, headers, body }: UpstreamRequest,
  signal: CancelSignal,
  { outbound }: InferenceDeps,
): Promise<OutboundReply> {
  const outgoing = { method, url, headers, body, signal }
  return provider.userGiven === true ? outbound.toUserUrl(outgoing) : outbound.toProvider(outgoing)
}

type Begun = Extract<Answer, { kind: 'whole' }> | Omit<StreamAnswer, 'served'>

/** What a reply comes to, at once when all of it is here. */
function answerOf(
  { status, headers, body }: OutboundReply,
  attempt: Attempt,
  dialect: Dialect,
  request: ParsedRequest,
): Begun | ClientError | Failed | Promise<Begun | ClientError | Failed> {
  if (status < 200 || status >= 300) return refused({ status, headers, body }, attempt, dialect, request)
  if (request.hub.stream) return firstOfStream({ status, headers, body }, attempt, dialect)
  const bytes = body.buffer(attempt.route.provider.userGiven === true ? ownReplyMaxBytes : replyMaxBytes)
  return bytes instanceof Promise ? bytes.then(all => whole(status, all, attempt, dialect)) : whole(status, bytes, attempt, dialect)
}

/** The reply has begun: what it took goes into the meter and to routing. */
function begun(answer: Begun, { headers }: OutboundReply, firstByteMs: number, meter: Meter, { observer }: InferenceDeps): Answer {
  meter.firstByte()
  const { route, byok } = answer.attempt
  // What is left of a caller's own rate limit says nothing of the platform's.
  const shared = byok ? {} : headers
  // A stream has served when it has not broken off: one that always breaks behind its first chunk must open the circuit.
  if (answer.kind === 'stream') return { ...answer, served: () => observer.succeeded(stateKeyOf(route), firstByteMs, shared) }
  observer.succeeded(stateKeyOf(route), firstByteMs, shared)
  return answer
}

function unreachable(attempt: Attempt, error: unknown): Failed {
  return {
    attempt,
    failure: { kind: 'transient', status: null },
    message: `${attempt.route.provider.id} could not be reached (${error instanceof GatewayError ? error.message : errorCode(error)})`,
  }
}

/** A body that cannot be written is its sender's mistake and says nothing about the route. Throws `bad_request`. */
function requestOf(dialect: Dialect, hub: HubRequest, target: Target): UpstreamRequest {
  try {
    return dialect.request(hub, target)
  } catch (cause) {
    throw cause instanceof RangeError ? fail('bad_request', { message: 'The body is nested too deeply.', cause }) : cause
  }
}

function whole(status: number, bytes: Buffer, attempt: Attempt, dialect: Dialect): Extract<Answer, { kind: 'whole' }> | Failed {
  const value = parseReply(bytes)
  if (value === null)
    return {
      attempt,
      failure: { kind: 'transient', status },
      message: `${attempt.route.provider.id} answered ${status} with a body that is no JSON object`,
    }
  return { kind: 'whole', attempt, dialect, bytes, value }
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
async function firstOfStream(reply: OutboundReply, attempt: Attempt, dialect: Dialect): Promise<Omit<StreamAnswer, 'served'> | Failed> {
  const id = attempt.route.provider.id
  const type = String(reply.headers['content-type'] ?? '')
  if (!type.startsWith('text/event-stream')) {
    reply.body.destroy()
    return { attempt, failure: { kind: 'transient', status: reply.status }, message: `${id} answered a stream request with ${type || 'no content-type'}` }
  }
  const rest = reply.body[Symbol.asyncIterator]()
  const first = await rest.next()
  const tap = dialect.tap()
  if (!first.done) tap.push(first.value)
  if (first.done || tap.failed) {
    reply.body.destroy()
    return { attempt, failure: { kind: 'transient', status: reply.status }, message: `${id} ended the stream before the first chunk` }
  }
  return { kind: 'stream', attempt, first: first.value, rest, body: reply.body, tap }
}

async function refused(reply: OutboundReply, attempt: Attempt, dialect: Dialect, request: ParsedRequest): Promise<ClientError | Failed> {
  const bytes = await reply.body.buffer(errorBodyMaxBytes)
  const text = bytes.toString('utf8')
  const failure = dialect.failure(reply.status, reply.headers, text)
  if (failure.kind === 'client') return { kind: 'client-error', attempt, status: reply.status, bytes: withoutCredential(bytes, text, attempt) }
  return { attempt, failure, message: `${attempt.route.provider.id} answered ${reply.status}: ${publicMessage(text, attempt.credential, request.hub.body)}` }
}

/** A provider's refusal goes to the caller as it is, but for the key that it may quote: it can be one that the caller must not see. */
function withoutCredential(bytes: Buffer, text: string, { credential }: Attempt): Buffer {
  const secret = credential?.reveal()
  return secret !== undefined && secret !== '' && text.includes(secret) ? Buffer.from(text.replaceAll(secret, '[secret]')) : bytes
}

function note({ attempt, failure, message }: Failed, deps: InferenceDeps): void {
  const id = stateKeyOf(attempt.route)
  deps.log.warn('route failed', {
    provider: attempt.route.provider.id,
    model: attempt.route.modelId,
    code: failure.kind,
    ...(failure.status === null ? {} : { status: failure.status }),
  })
  void message
  // A caller's own credential that is refused or used up says nothing about the route, which others share.
  if (attempt.byok && (failure.kind === 'credential' || failure.kind === 'billing' || (failure.kind === 'rate-limited' && !attempt.route.provider.userGiven)))
    return
  if (failure.kind === 'rate-limited') deps.observer.rateLimited(id)
  else if (failure.kind !== 'billing') deps.observer.failed(id)
}

function allFailed(failures: readonly Failed[]): GatewayError {
  const last = failures.at(-1)
  const headers: Record<string, string> = last === undefined ? {} : { 'x-br-provider': last.attempt.route.provider.id }
  if (failures.length > 0 && failures.every(({ failure }) => failure.kind === 'billing')) return fail('provider_unavailable_billing', { headers })
  const waits = last?.failure.kind === 'rate-limited' ? last.failure.retryAfterSeconds : null
  return fail('all_routes_failed', {
    message: `Every route was tried and failed. Last: ${last?.message ?? 'no route'}`,
    headers,
    ...(waits === null ? {} : { retryAfterSeconds: waits }),
  })
}

function errorCode(error: unknown): string {
  if (typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'string') return error.code
  return error instanceof Error ? error.name : 'unknown error'
}
