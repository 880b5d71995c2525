import type { Call, RouteStep } from '../../platform/endpoint.ts'
import { fail, GatewayError } from '../../platform/errors.ts'
import type { CancelSignal } from '../../platform/loop/cancellation.ts'
import { BodyTooLargeError } from '../../platform/outbound/upstream-body.ts'
import type { Route } from '../catalog/model.ts'
import type { Attempt, Plan } from '../routing/plan.ts'
import { brHeader } from '../wire/response-headers.ts'
import type { Meter } from './charge/meter.ts'
import { thinksUnseen } from './charge/thinks-unseen.ts'
import type { InferenceDeps } from './deps.ts'
import type { Kind, PerformContext } from './kinds/kind.ts'
import type { ParsedRequest } from './kinds/request.ts'
import { refusedOwnKey } from './own-key-advice.ts'
import type { BytesAnswer, ClientError, Failed, Performed, ReplyHeaders, StreamAnswer, WholeAnswer } from './replies/answer.ts'
import { replyWait } from './replies/reply-wait.ts'
import { UnreadReplyError } from './replies/unread-usage.ts'
import type { BillOf } from './stream/stream-adapter.ts'

/**
 * The result of a dial. `served` reports to routing that the route has served the call. It is called at the end of a stream that the provider
 * did not break off.
 */
export type Answer = WholeAnswer | ((StreamAnswer | BytesAnswer) & { readonly served: () => void }) | ClientError

/** A call with its plan and its hold. */
export interface DialedCall {
  readonly kind: Kind
  readonly plan: Plan
  readonly request: ParsedRequest
  readonly meter: Meter
}

/** What ends a call from outside: the signal, and the check for a revoke, which throws. */
export interface DialEnds {
  readonly signal: CancelSignal
  recheck(): void
}

/**
 * Dials the plan's attempts in order until one answers. A client error ends the loop; any other failure leads to the next attempt. The caller
 * has received nothing while this runs, so a failover is invisible to the caller. After the first byte there is no failover. Throws
 * `all_routes_failed`, `provider_unavailable_billing`, `reply_too_large`, `replies_refused`, or the signal's reason.
 */
export async function dial({ kind, plan, request, meter }: DialedCall, ends: DialEnds, deps: InferenceDeps, onRoute?: Call['onRoute']): Promise<Answer> {
  const failures: Failed[] = []
  const { signal } = ends
  const { attempts } = plan
  // When a route's circuit is half-open and another call probes the route, the route waits until the others have failed.
  let waiting: Attempt[] | null = null
  for (let index = 0; index < attempts.length + (waiting?.length ?? 0); index++) {
    const attempt = attempts[index] ?? waiting?.[index - attempts.length]
    if (attempt === undefined) break
    if (attempt.afterRateLimit && !failures.some(isRateLimitOfForwarded)) continue
    if (!deps.observer.begins(attempt, meter.orgId) && index < attempts.length) {
      waiting ??= []
      waiting.push(attempt)
      continue
    }
    ends.recheck()
    signal.throwIfAborted()
    await meter.opens(attempt)
    // The journal writes the record at the end of this turn of the event loop, so a revocation may have come in the meantime.
    ends.recheck()
    signal.throwIfAborted()
    meter.dials()
    const sent = meter.request
    onRoute?.(stepOf(attempt, 'dialed'))
    const startedMs = deps.clock.monotonicMs()
    let result: Performed
    let thrown: unknown = null
    try {
      result = await kind.perform(attempt, new DialContext(kind, sent, signal, deps, meter))
    } catch (error) {
      if (isUnread(error) && !signal.aborted && attempt.route.provider.userGiven !== true) throw await unread(error, attempt, meter, deps)
      result = failureOf(error, attempt, signal, meter, deps)
      thrown = error
    }
    if ('failure' in result) endLate(result, thrown, deps.clock.monotonicMs() - startedMs, { kind, request: sent, meter }, deps)
    if ('answer' in result) onRoute?.(stepOf(attempt, 'answered'))
    if ('answer' in result) return begun(result.answer, result.replyHeaders, deps.clock.monotonicMs() - startedMs, meter, deps)
    if (result.kind === 'client-error') {
      deps.observer.undecided(attempt, meter.orgId)
      return result
    }
    failures.push(result)
    onRoute?.(stepOf(attempt, 'failed', result.message))
    if (result.made !== undefined && !attempt.byok && attempt.route.provider.userGiven !== true) meter.failedWith(result.made)
    meter.routeFailed(String(result.failure.status ?? result.failure.kind))
    note(result, meter, deps)
  }
  const refusal = failures.at(-1)?.refusal ?? failures.findLast(failed => failed.relayed !== undefined)?.relayed
  if (refusal !== undefined) return refusal
  throw allFailed(failures, request)
}

const isRateLimitOfForwarded = ({ attempt: { forwarded }, failure }: Failed): boolean => forwarded === true && failure.status === 429

/** The arguments of a performer. */
class DialContext implements PerformContext {
  readonly kind: Kind
  readonly request: ParsedRequest
  readonly signal: CancelSignal
  readonly deps: InferenceDeps
  readonly #meter: Meter

  constructor(kind: Kind, request: ParsedRequest, signal: CancelSignal, deps: InferenceDeps, meter: Meter) {
    this.kind = kind
    this.request = request
    this.signal = signal
    this.deps = deps
    this.#meter = meter
  }

  get orgId(): number {
    return this.#meter.orgId
  }

  get bill(): BillOf {
    return tokens => this.#meter.billOf(tokens)
  }

  priceAs(route: Route): void {
    this.#meter.priceAs(route)
  }
}

function stepOf({ route, model, byok }: Attempt, outcome: RouteStep['outcome'], why?: string): RouteStep {
  const residency = route.residency === 'india' ? 'india' : 'global'
  return { outcome, provider: route.provider.id, model: model.id, residency, byok, ...(why === undefined ? {} : { why }) }
}

/** The reply has begun: records the time until its first byte in the meter and in routing. */
function begun(
  answer: WholeAnswer | StreamAnswer | BytesAnswer,
  headers: ReplyHeaders,
  firstByteMs: number,
  meter: Meter,
  { observer }: InferenceDeps,
): Answer {
  meter.firstByte()
  const { attempt } = answer
  // The rate limit headers of a caller's own credential say nothing about the platform's rate limit.
  const shared = attempt.byok ? {} : headers
  // A stream counts as a success only at its end. A route that always breaks off after its first chunk must open the circuit.
  if (answer.kind !== 'whole') return servedLater(answer, meter.orgId, firstByteMs, shared, observer)
  observer.succeeded(attempt, meter.orgId, firstByteMs, shared)
  return answer
}

function servedLater(
  answer: StreamAnswer | BytesAnswer,
  orgId: number,
  firstByteMs: number,
  headers: ReplyHeaders,
  observer: InferenceDeps['observer'],
): Answer {
  // The answer is not copied: a copy would keep the first chunk, which may be long, until the end of the stream.
  return Object.assign(answer, { served: () => observer.succeeded(answer.attempt, orgId, firstByteMs, headers) })
}

/**
 * Notes a reply that a provider may have made without giving it in time. Throws the error for the caller when the provider may still be at work.
 * Decisions 0483 and 0503 give the reasons.
 */
function endLate(result: Failed, thrown: unknown, elapsedMs: number, { kind, request, meter }: Omit<DialedCall, 'plan'>, deps: InferenceDeps): void {
  const { attempt, failure } = result
  const gaveUp = isEdgeEnd(thrown, failure.status) && elapsedMs >= deps.timeouts.firstByteMs / edgePatienceParts
  const silence = silenceOf(gaveUp ? edgeEnd : errorCode(thrown), kind, request, attempt, deps)
  if (silence === null || !meter.timesOut(silence === 'at work')) return
  // An edge that gives up may be the edge of a dead provider, so its circuit counts the failure.
  if (gaveUp) note(result, meter, deps)
  else deps.observer.undecided(attempt, meter.orgId)
  throw lateReply(result, request)
}

/** The statuses of a proxy in front of a provider that has waited long enough for it: 524 is Cloudflare's. */
const edgeStatuses: ReadonlySet<number | null> = new Set([408, 504, 524])
/** The errors of a connection that ends after the request was written and before the reply is complete. */
const closedCodes: ReadonlySet<string> = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE'])
/** The name under which `silenceOf` knows both. */
const edgeEnd = 'edge'
/** A proxy waits for at least FIRST_BYTE_TIMEOUT_MS divided by this (30 s) before it gives up. A provider that is down fails faster. */
const edgePatienceParts = 4

const isEdgeEnd = (thrown: unknown, status: number | null): boolean => (thrown === null ? edgeStatuses.has(status) : closedCodes.has(errorCode(thrown)))

/**
 * Returns what the silence of a provider that bills the operator means, or null when the error is another one. A provider is at work when it was asked for
 * more than can come in time, or has begun a stream of a model that thinks unseen. Otherwise it is taken for one that hangs, although it may have made the reply.
 */
function silenceOf(code: string, kind: Kind, request: ParsedRequest, attempt: Attempt, { timeouts }: InferenceDeps): 'at work' | 'hangs' | null {
  const { byok, route, model } = attempt
  if (byok || route.provider.userGiven === true) return null
  switch (code) {
    case 'UND_ERR_HEADERS_TIMEOUT':
      return replyWait(kind, request, attempt, timeouts)?.isShort === true ? 'at work' : 'hangs'
    case 'UND_ERR_BODY_TIMEOUT':
      return request.stream && kind.hasOutput && thinksUnseen(request, model) ? 'at work' : 'hangs'
    case edgeEnd: {
      const wait = replyWait(kind, request, attempt, timeouts)
      return wait === null ? null : wait.isShort ? 'at work' : 'hangs'
    }
    default:
      return null
  }
}

/** Returns the error of a provider that is at work for longer than the gateway waits: another route would only make the reply again. */
const lateReply = ({ attempt, message }: Failed, { stream }: ParsedRequest): GatewayError =>
  fail('all_routes_failed', {
    message: `${message} ${stream ? silentStream : longReply} The call was made and is charged.`,
    headers: { [brHeader.provider]: attempt.route.provider.id },
    shouldRetry: false,
  })

const silentStream = 'Its model may have thought for longer than STREAM_IDLE_TIMEOUT_MS. Ask for less effort (reasoning_effort).'
const longReply =
  'The reply that was asked for can take longer than WHOLE_REPLY_TIMEOUT_MS. Ask for a stream, for fewer tokens (max_tokens), or send a shorter recording.'

/** Returns true when a reply was not read to its end because it is too large or because the process has no room for it. */
const isUnread = (error: unknown): error is BodyTooLargeError | GatewayError => error instanceof BodyTooLargeError || isWithoutRoom(error)

const isWithoutRoom = (error: unknown): error is GatewayError => error instanceof GatewayError && error.errorName === 'replies_refused'

/**
 * Settles a successful reply that is not read, and returns the error for the caller. The provider has made the reply and bills it, and another
 * route would bill it again. So the call is charged as reported, or else by the estimate, and no other route is dialed. An own server does not come here. It bills no
 * account of this installation, so other routes may serve the call.
 */
async function unread(error: BodyTooLargeError | GatewayError, attempt: Attempt, meter: Meter, { observer }: InferenceDeps): Promise<GatewayError> {
  observer.undecided(attempt, meter.orgId)
  const headers = { [brHeader.provider]: attempt.route.provider.id }
  const refusal =
    error instanceof BodyTooLargeError
      ? fail(error instanceof UnreadReplyError ? error.errorName : 'reply_too_large', { cause: error, headers })
      : fail(error.errorName, { ...error.options, message: error.message, headers })
  await meter.settleUnread(refusal.status, error instanceof UnreadReplyError ? error.usage : null)
  return refusal
}

/** Returns the failure of the attempt. Throws an error that is not the provider's failure: a call that was cut or left, or a body that cannot be written. */
function failureOf(error: unknown, attempt: Attempt, signal: CancelSignal, { orgId }: Meter, { observer }: InferenceDeps): Failed {
  // Without room in this process, reading another route's reply would be useless too.
  const isOurs = error instanceof GatewayError && (error.status < 500 || isWithoutRoom(error))
  if (!signal.aborted && !isOurs) return unreachable(attempt, error)
  observer.undecided(attempt, orgId)
  throw signal.aborted ? signal.reason : error
}

function unreachable(attempt: Attempt, error: unknown): Failed {
  const what =
    error instanceof BodyTooLargeError
      ? `answered with more than this gateway takes (${error.message})`
      : `could not be reached (${error instanceof GatewayError ? error.message : errorCode(error)})`
  return { kind: 'failed', attempt, failure: { kind: 'transient', status: null }, message: `${attempt.route.provider.id} ${what}` }
}

function note({ attempt, failure }: Failed, meter: Meter, deps: InferenceDeps): void {
  if (!attempt.byok && (failure.kind === 'credential' || failure.kind === 'billing')) deps.observer.refused(attempt, meter.orgId)
  deps.log.warn('route failed', {
    ...meter.logFields,
    provider: attempt.route.provider.id,
    model: attempt.route.modelId,
    code: failure.kind,
    ...(failure.status === null ? {} : { status: failure.status }),
  })
  // A refused or exhausted credential of the caller says nothing about the route, which other callers share.
  if (attempt.byok && (failure.kind === 'credential' || failure.kind === 'billing' || (failure.kind === 'rate-limited' && !attempt.route.provider.userGiven)))
    deps.observer.undecided(attempt, meter.orgId)
  else if (failure.kind === 'rate-limited') deps.observer.rateLimited(attempt, meter.orgId)
  else if (saysNothing(failure)) deps.observer.undecided(attempt, meter.orgId)
  else deps.observer.failed(attempt, meter.orgId)
}

/** Failures of billing and of the request's content say nothing about the route's health. A model or method that is gone (410, 405) does. */
const saysNothing = ({ kind, status }: Failed['failure']): boolean =>
  kind === 'billing' || kind === 'client' || (kind === 'declined' && status !== 405 && status !== 410)

function allFailed(failures: readonly Failed[], request: ParsedRequest): GatewayError {
  const last = failures.at(-1)
  const headers: Record<string, string> = last === undefined ? {} : { [brHeader.provider]: last.attempt.route.provider.id }
  // The operator can repair only the platform's own accounts.
  if (failures.length > 0 && failures.every(({ failure, attempt }) => failure.kind === 'billing' && !attempt.byok))
    return fail('provider_unavailable_billing', { headers })
  const waits = last?.failure.kind === 'rate-limited' ? last.failure.retryAfterSeconds : null
  const own = refusedOwnKey(failures, request)
  return fail('all_routes_failed', {
    message: `Every route was tried and failed. Last: ${last?.message ?? 'no route'}${own === null ? '' : own.advice}`,
    headers,
    ...(own === null ? {} : { extra: { own_key: own.kind, own_key_provider: own.provider } }),
    ...(waits === null ? {} : { retryAfterSeconds: waits }),
  })
}

function errorCode(error: unknown): string {
  if (typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'string') return error.code
  return error instanceof Error ? error.name : 'unknown error'
}
