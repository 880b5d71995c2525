import { GatewayError } from '../../../platform/errors.ts'
import { Cancellation, type CancelSignal } from '../../../platform/loop/cancellation.ts'
import type { ModelKind } from '../../catalog/model.ts'
import type { Attempt, Plan } from '../../routing/plan.ts'
import type { ChainStep } from '../../wire/chat/router-fields.ts'
import type { InferenceDeps, RouteObserver } from '../deps.ts'
import type { ClientError, Failed, Performed } from '../replies/answer.ts'
import { isAboutTheLimit, type ProbeRequest, probedKinds, probeRequestOf, secondTryTokens } from './probe-request.ts'

/** A step of a chain that is to be tried, as a call of that organisation for that model would come to it. */
export interface ProbedStep {
  readonly orgId: number
  /** The model that the chain belongs to. */
  readonly modelId: string
  readonly step: ChainStep
}

/** Why a canary failed: stable words of ours, never those of a provider. */
export type ProbeFailure = 'no_route' | 'timeout' | 'unreachable' | 'rate_limited' | 'credential_refused' | 'provider_billing' | 'refused' | 'upstream_error'

/** What became of a canary. `latencyMs` is what a caller would have waited for the whole answer, failed routes before it included. */
export type ProbeResult =
  | { readonly kind: 'ok'; readonly provider: string; readonly latencyMs: number }
  | { readonly kind: 'failed'; readonly code: ProbeFailure }
  /** Even the smallest call of this kind of model costs real money, so none is made. */
  | { readonly kind: 'unsupported' }

/** What models of the catalog are for. */
export interface KindLookup {
  /** Null where the catalog does not have it. */
  kindOf(modelId: string): ModelKind | null
}

export interface ProbeDeps extends InferenceDeps, KindLookup {
  /** When a canary is given up. */
  readonly probeTimeoutMs: number
}

/** A chain serves calls of the kind of its model; a model that only a caller's own key reaches is a chat model. */
const kindOfStep = (modelId: string, stepModel: string, { kindOf }: KindLookup): ModelKind => kindOf(modelId) ?? kindOf(stepModel) ?? 'chat'

/** Whether canaries are made of such a step at all. */
export function isProbed(modelId: string, stepModel: string, lookup: KindLookup): boolean {
  return probedKinds.includes(kindOfStep(modelId, stepModel, lookup))
}

/**
 * Makes one canary: a call of one token that is routed like a real one, with the saved keys and servers of the organisation, and then
 * forgotten. Nothing is admitted, held, metered, billed, logged or told to circuits and averages. Never takes longer than the time limit.
 * Throws the signal's reason when it aborts, and what reading the organisation's settings throws.
 */
export async function probeStep(probed: ProbedStep, signal: CancelSignal, deps: ProbeDeps): Promise<ProbeResult> {
  const ask = probeRequestOf(probed.modelId, kindOfStep(probed.modelId, probed.step.model, deps), probed.step)
  if (ask === null) return { kind: 'unsupported' }
  const plan = await planOf(probed.orgId, ask, deps)
  if (plan === null) return { kind: 'failed', code: 'no_route' }
  const cut = new Cancellation()
  const onAbort = (): void => cut.abort(signal.reason)
  signal.throwIfAborted()
  signal.addEventListener('abort', onAbort, { once: true })
  const stopTimer = deps.clock.after(deps.probeTimeoutMs, () => cut.abort(late))
  try {
    return await tryInTurn(plan, { ...ask, orgId: probed.orgId }, cut, deps)
  } catch (error) {
    if (cut.reason === late) return { kind: 'failed', code: 'timeout' }
    throw error
  } finally {
    stopTimer()
    signal.removeEventListener('abort', onAbort)
  }
}

const late = new Error('the canary took too long')

/** Where a real call would go; null: nowhere. */
async function planOf(orgId: number, { kind, request }: ProbeRequest, deps: ProbeDeps): Promise<Plan | null> {
  const org = await deps.orgRouting(orgId)
  const { modelId, fields, promptTokens, needs } = request
  try {
    return deps.resolve({ modelId, kind: kind.modelKind, fields, org, policies: [], promptTokens, needs, accepts: model => request.accepts?.(model) })
  } catch (error) {
    if (error instanceof GatewayError) return null
    throw error
  }
}

interface Asked extends ProbeRequest {
  readonly orgId: number
}

/** As `dial` does, one route after the other until one answers. */
async function tryInTurn(plan: Plan, ask: Asked, cut: Cancellation, deps: ProbeDeps): Promise<ProbeResult> {
  const begunMs = deps.clock.monotonicMs()
  let code: ProbeFailure = 'no_route'
  for (const attempt of plan.attempts) {
    const result = await attemptOnce(attempt, ask, cut, deps)
    if (result === 'ok') {
      return { kind: 'ok', provider: attempt.route.provider.id, latencyMs: Math.max(1, Math.round(deps.clock.monotonicMs() - begunMs)) }
    }
    code = result
  }
  return { kind: 'failed', code }
}

async function attemptOnce(attempt: Attempt, ask: Asked, cut: Cancellation, deps: ProbeDeps): Promise<ProbeFailure | 'ok'> {
  const first = await performed(attempt, ask, cut, deps)
  if (typeof first === 'string') return first
  if ('answer' in first) return 'ok'
  if (first.kind === 'failed') return failureOf(first)
  if (!isLimited(first)) return 'refused'
  const again = await performed(attempt, { ...ask, request: ask.request.withMaxTokens(secondTryTokens) }, cut, deps)
  if (typeof again === 'string') return again
  if ('answer' in again) return 'ok'
  if (again.kind === 'failed') return failureOf(again)
  // The model was reached, and has said nothing else against the call.
  return isLimited(again) ? 'ok' : 'refused'
}

const isLimited = ({ status, bytes }: ClientError): boolean => isAboutTheLimit(status, bytes.toString('utf8'))

/** Throws only when it was cut. */
async function performed(attempt: Attempt, { kind, request, orgId }: Asked, cut: Cancellation, deps: ProbeDeps): Promise<Performed | ProbeFailure> {
  cut.throwIfAborted()
  try {
    const unseen = { ...deps, observer: nobody }
    const result = await kind.perform(attempt, { kind, request, signal: cut, orgId, deps: unseen, bill: () => nothing(attempt) })
    cut.throwIfAborted()
    return result
  } catch (error) {
    cut.throwIfAborted()
    return error instanceof GatewayError && error.status < 500 ? 'refused' : 'unreachable'
  }
}

function failureOf({ failure }: Failed): ProbeFailure {
  switch (failure.kind) {
    case 'rate-limited':
      return 'rate_limited'
    case 'credential':
      return 'credential_refused'
    case 'billing':
      return 'provider_billing'
    case 'client':
    case 'declined':
      return 'refused'
    case 'transient':
      return 'upstream_error'
  }
}

const nothing = ({ route }: Attempt) => ({ cost_inr: 0, value_inr: 0, provider: route.provider.id })

/** Whoever may ask for a canary must not be able to open the circuit of a route that others use, nor to colour its averages. */
const nobody: RouteObserver = {
  succeeded: () => {},
  failed: () => {},
  rateLimited: () => {},
  begins: () => true,
  undecided: () => {},
  refused: () => {},
  calledTools: () => {},
}
