import { type Call, type Reply, reply } from '../../platform/endpoint.ts'
import { fail, GatewayError } from '../../platform/errors.ts'
import { abortSignalOf, type CancelSignal } from '../../platform/loop/cancellation.ts'
import { CallCutError } from '../../platform/loop/inflight.ts'
import { type BearerPrincipal, type KeyPrincipal, mayActFor, type Principal } from '../../platform/security/principal.ts'
import { assertNever } from '../../platform/values/assert.ts'
import { inrTextOf } from '../../platform/values/money.ts'
import type { Plan } from '../routing/plan.ts'
import type { StickyCall } from '../routing/sticky/sticky-routes.ts'
import type { Outcome } from '../usage/events/record.ts'
import { runKeyOf, runRefOf } from '../usage/runs/ended-runs.ts'
import { exactNumbersOf, isHeavy, parseAhead } from '../wire/json/json-body.ts'
import { inferenceBounds } from '../wire/json/json-scan.ts'
import { brHeader } from '../wire/response-headers.ts'
import { chosenRunId, runIdOfMetadata } from '../wire/runs/run-id.ts'
import type { TokenUsage } from '../wire/usage.ts'
import { type AdmittedCall, type AskedCall, admitCall, isDebited } from './admit-call.ts'
import { clientErrorReply } from './attempt/refusals.ts'
import type { CallTrace } from './call-trace.ts'
import { asksLongCache } from './charge/cache-time.ts'
import { type ChargedAgent, Meter } from './charge/meter.ts'
import type { ContentCall } from './content-log/content-capture.ts'
import type { InferenceDeps, NamedAgent } from './deps.ts'
import { type Answer, dial } from './dial.ts'
import type { IdempotentCall } from './idempotency/idempotency.ts'
import type { Kind } from './kinds/kind.ts'
import type { CallInput, ParsedRequest } from './kinds/request.ts'
import type { Departure } from './leaving/departure.ts'
import { chargingOf, departureOf, type LeavableCall, nobodyWaitsStatus, settleLeft } from './leaving/leaving.ts'
import type { BytesAnswer, StreamAnswer, WholeAnswer } from './replies/answer.ts'
import { exactBytes, exactStream } from './replies/exact-reply.ts'
import { cappedRunOf, type EnteredRun, requireRun } from './run/run-caps.ts'
import { relayStream } from './stream/relay.ts'
import { relayBytes } from './stream/relay-bytes.ts'

/**
 * Serves one inference call. Each step returns its value or throws a `GatewayError`. Nothing leaves the process before `dial`. After `dial` the
 * call settles exactly once in the meter, with or without an answer.
 */
export function serve(kind: Kind, input: CallInput, call: Call<Principal>, deps: InferenceDeps, idempotentCall: IdempotentCall | null = null): Promise<Reply> {
  return deps.traces === undefined || call.trace === undefined
    ? serveCall(kind, input, call, deps, idempotentCall)
    : traced(deps.traces.begin(kind.usageKind, call.trace, call.requestId), trace => serveCall(kind, input, call, deps, idempotentCall, trace))
}

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
  const charged = chargedAgent(principal, call.agentLabel, deps)
  const agent = charged instanceof Promise ? await charged : charged
  const entering = enterRun(agent, parsed, call, deps)
  const entered = entering instanceof Promise ? await entering : entering
  const known = deps.orgRouting(principal.orgId)
  const org = known instanceof Promise ? await known : known
  const eventId = idempotentCall?.eventId ?? deps.ids.uuidv7(deps.clock.nowMs())
  const asked = { kind, parsed, principal, agent, org, eventId, conversation: call.conversation, run: entered?.capped ?? null }
  const admitted = inTurn === undefined ? admitCall(asked, deps) : admitInTurn(asked, deps, inTurn)
  const { plan, request, boundRequest, permit, sticky } = admitted instanceof Promise ? await admitted : admitted
  trace?.planned(plan.model.id, request.stream)
  const facts = {
    kind,
    request,
    boundRequest,
    principal,
    agent,
    requestId: call.requestId,
    startedAtMs,
    idempotent: idempotentCall !== null,
    run: entered?.run ?? null,
    debits: isDebited(principal, deps),
    watch: deps.watch,
    trace,
  }
  const meter = new Meter(permit, facts, deps.clock)
  const leavable: StayingCall = { kind, request, plan, principal, agent, meter, sticky }
  const watch = watchCall(leavable, call, deps)
  const content = org.retentionDays === 0 ? null : contentOf(request, plan, principal, call, sentBytes(input), exact)
  let isStream = false
  try {
    let answer: Answer
    try {
      answer = await dialConfirmed(leavable, watch, deps, call.onRoute)
    } catch (error) {
      answer = await endUnanswered(error, meter, watch)
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
        const shown = exactBytes(body, exact)
        return kept(reply.bytes(shown instanceof Promise ? await shown : shown, headers), content, deps)
      }
      case 'stream':
        isStream = true
        return kept(exactStream(streamReply(leavable, answer, watch, deps), exact), content, deps)
      case 'bytes':
        isStream = true
        if (content !== null) deps.contentLog.keep(content, reply.text(`[${answer.headers['content-type']}]`, 'text/plain'))
        return bytesReply(leavable, answer, watch, deps)
      case 'client-error':
        await meter.settleFailed(answer.status)
        return kept(clientErrorReply(answer, kind.format, knownOf(meter)), content, deps)
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

/** The events that can end a call from outside, and the check of the kill switch before each dial. */
interface Watch {
  /** True when a plain key names the agent. The end of the agent then does not end the key. */
  readonly isNamed: boolean
  readonly signal: CancelSignal
  recheck(): void
  /** Is called once, before the first dial, because the named agent may have been revoked before the watch began. Throws `agent_revoked_label`. */
  confirm(): void | Promise<void>
  /** Reads the provider's reply after the caller has left. It is then also the signal. Null when no route of the plan needs that. */
  readonly departure: Departure | null
  end(): void
}

function watchCall(leavable: LeavableCall, call: Call, deps: InferenceDeps): Watch {
  const watch = watchAgent(leavable.principal, leavable.agent, call, deps)
  const departure = departureOf(leavable, watch, deps)
  if (departure === null) return watch
  return {
    isNamed: watch.isNamed,
    signal: departure,
    departure,
    recheck: () => watch.recheck(),
    confirm: () => watch.confirm(),
    end() {
      departure.dispose()
      watch.end()
    },
  }
}

/** The watch of a call that nobody but its own credential can end. It is a class because nearly every call has one. */
class OwnWatch implements Watch {
  readonly isNamed = false
  readonly departure = null
  readonly signal: CancelSignal
  readonly #principal: BearerPrincipal
  readonly #deps: InferenceDeps

  constructor(signal: CancelSignal, principal: BearerPrincipal, deps: InferenceDeps) {
    this.signal = signal
    this.#principal = principal
    this.#deps = deps
  }

  recheck(): void {
    this.#deps.recheck(this.#principal)
  }

  confirm(): void {}

  end(): void {}
}

/** A plain key's call in an agent's name ends when that agent ends. Otherwise the label would be a way around the kill switch. */
function watchAgent(principal: BearerPrincipal, agent: ChargedAgent, call: Call, deps: InferenceDeps): Watch {
  const { agentId, ancestorIds } = agent
  return principal.kind === 'agent' || agentId === null ? new OwnWatch(call.signal, principal, deps) : watchNamed(principal, agentId, ancestorIds, call, deps)
}

function watchNamed(principal: BearerPrincipal, agentId: number, ancestorIds: readonly number[], call: Call, deps: InferenceDeps): Watch {
  const controller = new AbortController()
  return {
    isNamed: true,
    signal: AbortSignal.any([abortSignalOf(call.signal), controller.signal]),
    recheck: () => deps.recheck(principal),
    confirm() {
      const named = deps.agentByLabel(principal.orgId, String(agentId))
      return named instanceof Promise ? named.then(refuseRevoked) : refuseRevoked(named)
    },
    departure: null,
    end: deps.inflight.register({ agentIds: [agentId, ...ancestorIds], keyId: null }, controller),
  }
}

function refuseRevoked(named: { readonly status: string } | null): void {
  if (named?.status === 'revoked') throw fail('agent_revoked_label')
}

/** Returns the principal of a caller with a key or an agent token. Throws `invalid_api_key`. */
export function bearer(principal: Principal): BearerPrincipal {
  if (principal.kind === 'session') throw fail('invalid_api_key')
  return principal
}

/**
 * Returns the run of the call, or null. A body is only looked at when neither the token nor a header names a run. Throws `bad_request` when the request
 * names another run than the token.
 */
export function runIdOf(principal: BearerPrincipal, ofHeaders: string | null | undefined, parsed: Pick<ParsedRequest, 'native'> | null): string | null {
  const claim = principal.kind === 'agent' ? principal.runId : undefined
  const native = parsed?.native
  const named = ofHeaders ?? (native?.format === 'anthropic' ? runIdOfMetadata(native.body['metadata']) : null)
  return chosenRunId(claim, named)
}

/**
 * Returns the run of the call, or null. It belongs to the agent at the top of the family, otherwise to the key. The end of the run cuts the call from here
 * on. Throws `bad_request`, `run_required`, `run_ended` and what `cappedRunOf` throws.
 */
export function enterRun(
  agent: ChargedAgent,
  parsed: Pick<ParsedRequest, 'native'> | null,
  call: Call<Principal>,
  deps: InferenceDeps,
): EnteredRun | null | Promise<EnteredRun> {
  const { agentId, ancestorIds, policies } = agent
  const principal = bearer(call.principal)
  const runId = runIdOf(principal, call.runId, parsed)
  if (runId === null) {
    if (policies.length > 0) requireRun(policies)
    return null
  }
  const run = { runId, runAgentId: ancestorIds.at(-1) ?? agentId }
  const ref = runRefOf(principal.orgId, principal.keyId, run)
  const key = deps.endedRuns?.enter(ref, call.joinRun) ?? runKeyOf(ref)
  const capped = cappedRunOf({ run, ref, key }, agent, call, deps.cappedRuns)
  return capped instanceof Promise ? capped.then(found => ({ run, capped: found })) : { run, capped }
}

/**
 * Returns the agent that the call charges. An agent token decides before any label. The header of a plain key is a label. When the label names a
 * registered agent for which the key may act, that agent is charged.
 */
export function chargedAgent(principal: BearerPrincipal, label: string | null, deps: InferenceDeps): ChargedAgent | Promise<ChargedAgent> {
  const { policies } = principal
  if (principal.kind === 'agent') return { agentId: principal.agentId, ancestorIds: principal.ancestorIds, label: null, policies }
  if (label === null) return policies.length === 0 ? nobody : { ...nobody, policies }
  const named = deps.agentByLabel(principal.orgId, label)
  return named instanceof Promise ? named.then(found => agentOfLabel(found, label, principal)) : agentOfLabel(named, label, principal)
}

const nobody: ChargedAgent = { agentId: null, ancestorIds: [], label: null, policies: [] }

function agentOfLabel(named: NamedAgent | null, label: string, principal: KeyPrincipal): ChargedAgent {
  const { policies } = principal
  refuseRevoked(named)
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
async function endUnanswered(error: unknown, meter: Meter, watch: Watch): Promise<never> {
  const { status, outcome } = endWithoutAnswer(error)
  await (outcome === 'failed'
    ? meter.settleFailed(status, outcome, watch.departure?.hasLeft)
    : meter.settleAbandoned(status, outcome, watch.departure?.hasNoPlace === true))
  throw watch.isNamed && error instanceof CallCutError && error.reason === 'agent_revoked' ? fail('agent_revoked_label') : error
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

/** Adds the headers that every reply after admission has: the agent's remaining budget, the run of the call and what its caps leave. */
function noteKnown(headers: Record<string, string>, meter: Meter): void {
  const left = meter.left.agentRemainingUinr
  if (left !== null) headers[brHeader.budgetRemainingInr] = inrTextOf(left)
  if (meter.runId === null) return
  headers[brHeader.runId] = meter.runId
  const ofRun = meter.left.runRemainingUinr
  if (ofRun !== null) headers[brHeader.runRemainingInr] = inrTextOf(ofRun)
  const calls = meter.left.runCallsRemaining
  if (calls !== null) headers[brHeader.runCallsRemaining] = String(calls)
}

/** Returns these headers for replies without the other x-br-* headers. */
function knownOf(meter: Meter): Record<string, string> {
  const headers: Record<string, string> = {}
  noteKnown(headers, meter)
  return headers
}

/** Adds these headers to an error after admission, as to its replies, and says whether the call has an event. */
function withKnown(error: unknown, meter: Meter): unknown {
  if (!(error instanceof GatewayError) || (meter.left.agentRemainingUinr === null && meter.runId === null && !meter.dialed)) return error
  const headers = { ...error.options.headers, ...knownOf(meter) }
  return fail(error.errorName, { ...error.options, message: error.message, headers, hasEvent: meter.dialed })
}

function streamReply(leavable: StayingCall, answer: Extract<Answer, { kind: 'stream' }>, watch: Watch, deps: InferenceDeps): Reply {
  const { request, meter, sticky } = leavable
  const { pump, keepAlive } = relayStream(answer, {
    ...chargingOf(answer, leavable, watch.departure, deps),
    clock: deps.clock,
    signal: watch.signal,
    onEnd(broke) {
      watch.end()
      if (broke) deps.observer.failed(answer.attempt, meter.orgId)
      else {
        answer.served()
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
  const { meter } = leavable
  const pump = relayBytes(answer, {
    meter,
    signal: watch.signal,
    onEnd(broke) {
      watch.end()
      if (broke) deps.observer.failed(answer.attempt, meter.orgId)
      else answer.served()
    },
  })
  // The cost header is sent when the cost is known before the first byte.
  const cost = answer.reading.exact ? { [brHeader.costInr]: String(meter.billOf(answer.reading.usage()).cost_inr) } : {}
  return reply.stream(pump, { ...headersOf(leavable, answer, meter.firstByteMs ?? 0, null), ...cost, 'cache-control': 'no-cache', 'x-accel-buffering': 'no' })
}
