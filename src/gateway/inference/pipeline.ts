import { type CacheRequest, type Call, type Reply, reply } from '../../platform/endpoint.ts'
import { fail, GatewayError } from '../../platform/errors.ts'
import { CallCutError } from '../../platform/loop/inflight.ts'
import { type BearerPrincipal, type KeyPrincipal, mayActFor, type Principal } from '../../platform/security/principal.ts'
import { assertNever } from '../../platform/values/assert.ts'
import type { Plan } from '../routing/plan.ts'
import type { StickyCall } from '../routing/sticky/sticky-routes.ts'
import type { Outcome } from '../usage/events/record.ts'
import { type EnteredRun, enterRun, revokedError, runIdFor, withRunId } from '../usage/runs/entry/enter-run.ts'
import type { LoopCall } from '../usage/runs/loops/run-loops.ts'
import { exactNumbersOf, isHeavy, parseAhead } from '../wire/json/json-body.ts'
import { inferenceBounds } from '../wire/json/json-scan.ts'
import { brHeader } from '../wire/response-headers.ts'
import { lastTurnOf } from '../wire/runs/last-turn.ts'
import { runIdOfMetadata } from '../wire/runs/run-id.ts'
import { tagsOf } from '../wire/runs/run-tags.ts'
import type { TokenUsage } from '../wire/usage.ts'
import { type AdmittedCall, type AskedCall, admitCall, isDebited } from './admit-call.ts'
import { clientErrorReply } from './attempt/refusals.ts'
import type { CallTrace } from './call-trace.ts'
import { asksLongCache } from './charge/cache-time.ts'
import { type ChargedAgent, Meter, type MeterInput } from './charge/meter.ts'
import type { ContentCall } from './content-log/content-capture.ts'
import type { InferenceDeps, NamedAgent } from './deps.ts'
import { type Answer, dial } from './dial.ts'
import type { IdempotentCall } from './idempotency/idempotency.ts'
import type { Kind } from './kinds/kind.ts'
import type { CallInput, ParsedRequest } from './kinds/request.ts'
import { chargingOf, type LeavableCall, nobodyWaitsStatus, settleLeft } from './leaving/leaving.ts'
import { type Watch, watchCall } from './leaving/watch-call.ts'
import type { BytesAnswer, StreamAnswer, WholeAnswer } from './replies/answer.ts'
import { exactBytes, exactStream } from './replies/exact-reply.ts'
import { type CachedCall, type CacheHit, type OffCall, openCache } from './reply-cache/cached-call.ts'
import { knownOf, noteKnown, withKnown } from './run/known-headers.ts'
import { relayStream } from './stream/relay.ts'
import { relayBytes } from './stream/relay-bytes.ts'

/**
 * Serves one inference call. Each step returns its value or throws a `GatewayError`. Nothing leaves the process before `dial`. After `dial` the
 * call settles exactly once in the meter, with or without an answer.
 */
export function serve(kind: Kind, input: CallInput, call: Call<Principal>, deps: InferenceDeps, idempotentCall: IdempotentCall | null = null): Promise<Reply> {
  const served =
    deps.traces === undefined || call.trace === undefined
      ? serveCall(kind, input, call, deps, idempotentCall)
      : traced(deps.traces.begin(kind.usageKind, call.trace, call.requestId), trace => serveCall(kind, input, call, deps, idempotentCall, trace))
  const runId = runIdBefore(call)
  return runId === null ? served : inRun(served, runId)
}

/** Returns the run that the token or a header names, before the body is read. */
const runIdBefore = ({ principal, runId = null }: Call<Principal>): string | null => (principal.kind === 'agent' ? principal.runId : undefined) ?? runId

async function traced(trace: CallTrace, go: (trace: CallTrace) => Promise<Reply>): Promise<Reply> {
  try {
    const made = await go(trace)
    trace.replied()
    return made
  } catch (error) {
    trace.failed(error)
    throw error
  }
}

/** The steps before admission use a promise only when a value is not cached. */
async function serveCall(
  kind: Kind,
  input: CallInput,
  call: Call<Principal>,
  base: InferenceDeps,
  idempotentCall: IdempotentCall | null,
  trace?: CallTrace,
): Promise<Reply> {
  const principal = bearer(call.principal)
  const startedAtMs = base.clock.monotonicMs()
  const inTurn = inTurnOf(input, call, base)
  const parsed = inTurn === undefined ? kind.parse(input) : await parseInTurn(kind, input, inTurn)
  if (parsed.stream) call.holdStream?.()
  const exact = exactNumbersOf(input.bytes)
  const deps = inTurn === undefined && exact === undefined ? base : { ...base, inTurn, exact }
  const runId = runIdOf(principal, call.runId, parsed)
  const served = serveParsed({ kind, input, parsed, call, principal, runId, startedAtMs }, deps, idempotentCall, trace)
  // Only a body can name the run of a call whose token and headers do not.
  return runId === null || runIdBefore(call) !== null ? served : inRun(served, runId)
}

/** Every reply of a call of a run has the id of the run, refusals too. */
async function inRun(served: Promise<Reply>, runId: string): Promise<Reply> {
  try {
    return await served
  } catch (error) {
    throw withRunId(error, runId)
  }
}

/** A call whose body is parsed. */
interface ParsedCall {
  readonly kind: Kind
  readonly input: CallInput
  readonly parsed: ParsedRequest
  readonly call: Call<Principal>
  readonly principal: BearerPrincipal
  /** The run that the call names. */
  readonly runId: string | null
  readonly startedAtMs: number
}

async function serveParsed(
  { kind, input, parsed, call, principal, runId, startedAtMs }: ParsedCall,
  deps: InferenceDeps,
  idempotentCall: IdempotentCall | null,
  trace: CallTrace | undefined,
): Promise<Reply> {
  const { inTurn, exact } = deps
  const charged = chargedAgent(principal, call.agentLabel, deps, runId)
  const agent = charged instanceof Promise ? await charged : charged
  const tags = call.runHeaders === undefined ? null : tagsOf(call.runHeaders)
  const entering = enterRun(principal, agent, runId, call, deps)
  const entered = entering instanceof Promise ? await entering : entering
  const watching = entered === null ? null : watchLoops(entered, input, parsed, deps)
  const loop = watching instanceof Promise ? await watching : watching
  const known = deps.orgRouting(principal.orgId)
  const org = known instanceof Promise ? await known : known
  const eventId = idempotentCall?.eventId ?? deps.ids.uuidv7(deps.clock.nowMs())
  const asked = { kind, parsed, principal, agent, org, eventId, conversation: call.conversation, run: entered?.capped ?? null }
  const parts = { startedAtMs, entered, idempotentCall, tags, trace }
  const cache = call.replyCache === undefined ? null : await cacheOfCall(call.replyCache, asked, call, deps, parts)
  if (cache?.kind === 'hit') {
    loop?.answered()
    return hitReply(cache, asked, input, call, deps)
  }
  const admitted = inTurn === undefined ? admitCall(asked, deps) : admitInTurn(asked, deps, inTurn)
  const taken = admitted instanceof Promise ? await admitted : admitted
  const { plan, request, permit, sticky } = taken
  trace?.planned(plan.model.id, request.stream)
  const meter = new Meter(permit, meterInputOf(asked, taken, call, deps, parts), deps.clock)
  const leavable: StayingCall = { kind, request, plan, principal, agent, meter, sticky, loop }
  const watch = watchCall(leavable, call, deps)
  const content = org.retentionDays === 0 ? null : contentOf(request, plan, principal, call, sentBytes(input), exact)
  let isStream = false
  try {
    let answer: Answer
    try {
      answer = await dialConfirmed(leavable, watch, deps, call.onRoute)
    } catch (error) {
      answer = await endUnanswered(error, leavable, watch, deps)
    }
    const { departure } = watch
    if (departure !== null && (departure.hasLeft || (departure.aborted && answer.kind === 'whole'))) {
      await settleLeft(answer, leavable, departure, deps)
      throw departure.hasLeft ? departure.leftReason : departure.reason
    }
    switch (answer.kind) {
      case 'whole': {
        const { usage, estimated, body } = answer
        const settled = meter.settle(usage, estimated, 'ok', 200)
        if (settled !== undefined) await settled
        const headers = headersOf(leavable, answer, meter.latencyMs, usage)
        sticky?.served(answer.attempt, usage, () => asksLongCache(request))
        loop?.answered()
        const shown = exactBytes(body, exact)
        return cached(kept(reply.bytes(shown instanceof Promise ? await shown : shown, headers), content, deps), cache, answer, meter)
      }
      case 'stream':
        isStream = true
        return await cached(kept(exactStream(streamReply(leavable, answer, watch, deps), exact), content, deps), cache, answer, meter)
      case 'bytes':
        isStream = true
        if (content !== null) deps.contentLog.keep(content, reply.text(`[${answer.headers['content-type']}]`, 'text/plain'))
        return cached(bytesReply(leavable, answer, watch, deps), cache, answer, meter)
      case 'client-error':
        await meter.settleFailed(answer.status)
        return cached(kept(clientErrorReply(answer, kind.format, knownOf(meter)), content, deps), cache, answer, meter)
      default:
        return assertNever(answer)
    }
  } catch (error) {
    if (content !== null && meter.dialed) deps.contentLog.keepFailure(content, error)
    throw withKnown(error, meter)
  } finally {
    if (idempotentCall !== null) idempotentCall.dialed = meter.dialed
    if (!isStream) watch.end()
  }
}

/** A call whose caller may leave, in its conversation. */
interface StayingCall extends LeavableCall {
  readonly sticky: StickyCall | null
  /** The watch for loops of its run. */
  readonly loop: LoopCall | null
}

// These two are functions of their own because a function that makes closures keeps its variables on the heap, for light bodies too.

const parseInTurn = (kind: Kind, input: CallInput, inTurn: InTurn): Promise<ParsedRequest> => parsedInTurns(input.bytes, inTurn, () => kind.parse(input))

/** Admission translates the request to check that the first route can express it, so a heavy body takes a turn. */
async function admitInTurn(asked: AskedCall, deps: InferenceDeps, inTurn: InTurn): Promise<AdmittedCall> {
  return await inTurn(() => admitCall(asked, deps))
}

type InTurn = NonNullable<InferenceDeps['inTurn']>

/** Returns the function that does work on a heavy body. Undefined when the body is light. Throws `bad_request`. */
export function inTurnOf(
  { bytes }: Pick<CallInput, 'bytes'>,
  { principal: { orgId }, signal: left }: Pick<Call<Principal>, 'principal' | 'signal'>,
  { heavyTurns }: InferenceDeps,
): InferenceDeps['inTurn'] {
  return isHeavy(bytes, inferenceBounds) ? (work, signal = left) => heavyTurns.run(orgId, work, signal) : undefined
}

/** Returns the result of `parse`, which parses a heavy body. Its JSON is parsed before, in many turns. Throws `bad_request`. */
export async function parsedInTurns<T>(bytes: Buffer, inTurn: NonNullable<InferenceDeps['inTurn']>, parse: () => T): Promise<T> {
  await parseAhead(bytes, inferenceBounds, inTurn)
  return inTurn(parse)
}

/** Returns the approximate size of the part of a call that is kept. For a form that is its text fields without the files. */
const sentBytes = ({ bytes, form }: CallInput): number => (form === undefined ? bytes.length : form.fields.reduce((sum, { value }) => sum + value.length, 0))

/** Returns the part of the call that is kept for organisations with a retention window. */
function contentOf(
  request: ParsedRequest,
  plan: Plan,
  { orgId, keyId }: BearerPrincipal,
  { requestId }: Call,
  requestBytes: number,
  exact: InferenceDeps['exact'],
): ContentCall {
  return { orgId, requestId, keyId, model: plan.model.id, native: request.native, requestBytes, exact }
}

const kept = (made: Reply, content: ContentCall | null, deps: InferenceDeps): Reply => (content === null ? made : deps.contentLog.keep(content, made))

/** What the pipeline knows of a call beside what it asks. */
interface CallParts {
  readonly startedAtMs: number
  readonly entered: EnteredRun | null
  readonly idempotentCall: IdempotentCall | null
  readonly tags: ReturnType<typeof tagsOf> | null
  readonly trace: CallTrace | undefined
}

function meterInputOf(
  { kind, principal, agent }: AskedCall,
  { request, boundRequest }: AdmittedCall,
  { requestId }: Call,
  deps: InferenceDeps,
  { startedAtMs, entered, idempotentCall, tags, trace }: CallParts,
): MeterInput {
  return {
    kind,
    request,
    boundRequest,
    principal,
    agent,
    requestId,
    startedAtMs,
    idempotent: idempotentCall !== null,
    run: entered?.run ?? null,
    tags,
    part: deps.panelPart,
    debits: isDebited(principal, deps),
    watch: deps.watch,
    trace,
  }
}

/** Opens the reply cache for a call that asks for it. */
function cacheOfCall(
  wish: CacheRequest,
  asked: AskedCall,
  { requestId, signal }: Call,
  deps: InferenceDeps,
  { startedAtMs, entered, idempotentCall }: CallParts,
): Promise<CacheHit | CachedCall | OffCall> {
  return openCache(wish, asked, { requestId, signal, startedAtMs, run: entered?.run ?? null, isIdempotent: idempotentCall !== null }, deps)
}

/** Returns the reply of a call that the cache serves. The log of content has it like any other. */
function hitReply({ reply: made, plan }: CacheHit, { parsed, principal }: AskedCall, input: CallInput, call: Call, deps: InferenceDeps): Reply {
  return kept(made, contentOf(parsed, plan, principal, call, sentBytes(input), deps.exact), deps)
}

/** Returns the reply of a provider, and lets the cache keep it. Nearly every call has no cache. */
const cached = (made: Reply, cache: CachedCall | OffCall | null, answer: Answer, meter: Meter): Reply | Promise<Reply> =>
  cache === null ? made : cache.keep(made, answer, meter)

/** Returns the principal of a caller with a key or an agent token. Throws `invalid_api_key`. */
export function bearer(principal: Principal): BearerPrincipal {
  if (principal.kind === 'session') throw fail('invalid_api_key')
  return principal
}

/**
 * Returns the id of the run of the call, or null. A body is only looked at when neither the token nor a header names a run. Throws `bad_request` when the
 * request names another run than the token.
 */
export function runIdOf(principal: BearerPrincipal, ofHeaders: string | null | undefined, parsed: Pick<ParsedRequest, 'native'> | null): string | null {
  const native = parsed?.native
  return runIdFor(principal, ofHeaders ?? (native?.format === 'anthropic' ? runIdOfMetadata(native.body['metadata']) : null))
}

/** Returns the watch for loops, or null when the run has none. Throws `run_loop_detected`. */
function watchLoops(
  { ref, key, actor, loop }: EnteredRun,
  { bytes }: CallInput,
  { native }: ParsedRequest,
  { runLoops, inTurn, panelPart }: InferenceDeps,
): LoopCall | null | Promise<LoopCall> {
  if (loop === 'off' || runLoops === undefined || panelPart !== undefined) return null
  return runLoops.begin({ ref, key, actor, loop }, { body: bytes, turn: lastTurnOf(native.format, native.body) }, inTurn)
}

/**
 * Returns the agent that the call charges. An agent token decides before any label. The header of a plain key is a label. When the label names a
 * registered agent for which the key may act, that agent is charged.
 */
export function chargedAgent(
  principal: BearerPrincipal,
  label: string | null,
  deps: InferenceDeps,
  runId: string | null = null,
): ChargedAgent | Promise<ChargedAgent> {
  const { policies } = principal
  if (principal.kind === 'agent') return { agentId: principal.agentId, ancestorIds: principal.ancestorIds, label: null, policies }
  if (label === null) return policies.length === 0 ? nobody : { ...nobody, policies }
  const named = deps.agentByLabel(principal.orgId, label)
  if (named instanceof Promise) return named.then(found => (isRevoked(found) ? refuse(found, runId, principal, deps) : agentOfLabel(found, label, principal)))
  return isRevoked(named) ? refuse(named, runId, principal, deps) : agentOfLabel(named, label, principal)
}

const isRevoked = (named: NamedAgent | null): named is NamedAgent => named?.status === 'revoked'

/** Always throws `agent_revoked_label`, or `run_ended` for a call of a run of the revoked agent. */
async function refuse(
  named: Pick<NamedAgent, 'status' | 'ancestorIds'>,
  runId: string | null,
  { orgId }: BearerPrincipal,
  { agentByLabel }: InferenceDeps,
): Promise<never> {
  throw await revokedError(named, runId, id => agentByLabel(orgId, String(id)))
}

const nobody: ChargedAgent = { agentId: null, ancestorIds: [], label: null, policies: [] }

function agentOfLabel(named: NamedAgent | null, label: string, principal: KeyPrincipal): ChargedAgent {
  const { policies } = principal
  // A name for which the key may not act stays a mere label, like a name of no agent.
  if (named === null || !mayActFor(principal, named.ownerUser)) return { agentId: null, ancestorIds: [], label, policies }
  const { id, ancestorIds } = named
  return { agentId: id, ancestorIds, label: null, policies: named.policies.length === 0 ? policies : [...policies, ...named.policies] }
}

/** Dials unless the named agent, if there is one, is revoked. Errors come as rejections of the promise, never as exceptions. */
function dialConfirmed(call: LeavableCall, watch: Watch, deps: InferenceDeps, onRoute: Call['onRoute']): Promise<Answer> {
  return watch.isNamed ? dialNamed(call, watch, deps, onRoute) : dial(call, watch, deps, onRoute)
}

async function dialNamed(call: LeavableCall, watch: Watch, deps: InferenceDeps, onRoute: Call['onRoute']): Promise<Answer> {
  await watch.confirm()
  return dial(call, watch, deps, onRoute)
}

/** Settles a call without an answer as failed, or releases it when nothing was dialed. Always throws. */
async function endUnanswered(thrown: unknown, { meter, principal, agent }: StayingCall, watch: Watch, deps: InferenceDeps): Promise<never> {
  const isCut = watch.isNamed && thrown instanceof CallCutError && thrown.reason === 'agent_revoked'
  const { status, outcome } = endWithoutAnswer(thrown)
  await (outcome === 'failed'
    ? meter.settleFailed(status, outcome, watch.departure?.hasLeft)
    : meter.settleAbandoned(status, outcome, watch.departure?.hasNoPlace === true))
  const isRevokedLabel = isCut || (thrown instanceof GatewayError && thrown.errorName === 'agent_revoked_label')
  if (isRevokedLabel) await refuse({ status: 'revoked', ancestorIds: agent.ancestorIds }, meter.runId, principal, deps)
  throw thrown
}

/** Returns the status that the caller saw and the outcome, for the usage row of a call without an answer. */
function endWithoutAnswer(error: unknown): { status: number; outcome: Outcome } {
  if (error instanceof GatewayError) return { status: error.status, outcome: 'failed' }
  if (error instanceof CallCutError) return { status: statusOfCut(error), outcome: 'cut' }
  return { status: nobodyWaitsStatus, outcome: 'client_gone' }
}

function statusOfCut({ reason }: CallCutError): number {
  if (reason === 'agent_paused' || reason === 'run_ended') return 403
  return reason === 'agent_revoked' || reason === 'key_revoked' ? 401 : 503
}

/** `usage` is null for a reply whose usage is not known when its head is written. */
function headersOf(
  { plan, meter, sticky }: StayingCall,
  answer: WholeAnswer | StreamAnswer | BytesAnswer,
  latencyMs: number,
  usage: TokenUsage | null,
): Record<string, string> {
  const headers: Record<string, string> = {
    ...plan.headers,
    ...answer.headers,
    [brHeader.provider]: answer.attempt.route.provider.id,
    [brHeader.latencyMs]: String(Math.round(latencyMs)),
  }
  const state = sticky?.stateOf(answer.attempt, usage) ?? null
  if (state !== null) headers[brHeader.sticky] = state
  if (usage !== null) headers[brHeader.costInr] = String(meter.costInrOf(usage))
  noteKnown(headers, meter)
  return headers
}

function streamReply(leavable: StayingCall, answer: Extract<Answer, { kind: 'stream' }>, watch: Watch, deps: InferenceDeps): Reply {
  const { request, meter, sticky, loop } = leavable
  const { pump, keepAlive } = relayStream(answer, {
    ...chargingOf(answer, leavable, watch.departure, deps),
    clock: deps.clock,
    signal: watch.signal,
    onEnd(broke) {
      watch.end()
      if (broke) deps.observer.failed(answer.attempt, meter.orgId)
      else {
        answer.served()
        loop?.answered()
        sticky?.served(answer.attempt, answer.adapter.usage(), () => asksLongCache(request))
      }
    },
  })
  return reply.livingStream(pump, keepAlive, {
    ...headersOf(leavable, answer, meter.firstByteMs ?? 0, null),
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-cache',
    'x-accel-buffering': 'no',
  })
}

function bytesReply(leavable: StayingCall, answer: Extract<Answer, { kind: 'bytes' }>, watch: Watch, deps: InferenceDeps): Reply {
  const { meter, loop } = leavable
  const pump = relayBytes(answer, {
    meter,
    signal: watch.signal,
    onEnd(broke) {
      watch.end()
      if (broke) deps.observer.failed(answer.attempt, meter.orgId)
      else {
        answer.served()
        loop?.answered()
      }
    },
  })
  // The cost header is sent when the cost is known before the first byte.
  const cost = answer.reading.exact ? { [brHeader.costInr]: String(meter.billOf(answer.reading.usage()).cost_inr) } : {}
  return reply.stream(pump, { ...headersOf(leavable, answer, meter.firstByteMs ?? 0, null), ...cost, 'cache-control': 'no-cache', 'x-accel-buffering': 'no' })
}
