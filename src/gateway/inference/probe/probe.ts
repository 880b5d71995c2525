import { GatewayError } from '../../../platform/errors.ts'
import { Cancellation, type CancelSignal } from '../../../platform/loop/cancellation.ts'
import type { ModelKind } from '../../catalog/model.ts'
import type { Attempt, Plan } from '../../routing/plan.ts'
import type { ChainStep } from '../../wire/chat/router-fields.ts'
import type { InferenceDeps, RouteObserver } from '../deps.ts'
import { routedTokensOf } from '../kinds/request.ts'
import type { ClientError, Failed, Performed } from '../replies/answer.ts'
import { isAboutTheLimit, type ProbeRequest, probedKinds, probeRequestOf, secondTryTokens } from './probe-request.ts'

/** A step of a chain to try, in the same way as the organisation's call for the model would come to it. */
export interface ProbedStep {
  readonly orgId: number
  /** The model that the chain belongs to. */
  readonly modelId: string
  readonly step: ChainStep
}

/** The reason of a failed canary. These are stable words of the gateway and contain no text of a provider. */
export type ProbeFailure = 'no_route' | 'timeout' | 'unreachable' | 'rate_limited' | 'credential_refused' | 'provider_billing' | 'refused' | 'upstream_error'

/** The result of a canary. `latencyMs` is the time that a caller would have waited for the whole answer, including failed routes before it. */
export type ProbeResult =
  | { readonly kind: 'ok'; readonly provider: string; readonly latencyMs: number }
  | { readonly kind: 'failed'; readonly code: ProbeFailure }
  /** No canary is made, because even the smallest call of this kind of model costs real money. */
  | { readonly kind: 'unsupported' }

/** Looks up the kinds of the catalog's models. */
export interface KindLookup {
  /** Returns null for a model that is not in the catalog. */
  kindOf(modelId: string): ModelKind | null
}

export interface ProbeDeps extends InferenceDeps, KindLookup {
  /** The time after which a canary is given up. */
  readonly probeTimeoutMs: number
}

/** A chain serves calls of its model's kind. A model that is not in the catalog can only be reached with a caller's own key and is taken for a chat model. */
const kindOfStep = (modelId: string, stepModel: string, { kindOf }: KindLookup): ModelKind => kindOf(modelId) ?? kindOf(stepModel) ?? 'chat'

/** Returns true when canaries are made for such a step. */
export function isProbed(modelId: string, stepModel: string, lookup: KindLookup): boolean {
  return probedKinds.includes(kindOfStep(modelId, stepModel, lookup))
}

/**
 * Makes one canary: a call of one token that is routed like a real one, with the saved keys and servers of the organisation. The canary leaves
 * no record: it is not admitted, held, metered, billed, logged or reported to circuits and averages. It ends at the time limit at the latest.
 * Throws the signal's reason when the signal aborts. Throws the errors of reading the organisation's settings.
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

/** The request of a canary with its organisation. */
type OrgRequest = ProbeRequest & Pick<ProbedStep, 'orgId'>

/** An attempt that has an answer. */
type Answered = Extract<Performed, { readonly answer: unknown }>

const late = new Error('the canary took too long')

/** Returns the plan of a real call, or null when there is no route. */
async function planOf(orgId: number, { kind, request }: ProbeRequest, deps: ProbeDeps): Promise<Plan | null> {
  const org = await deps.orgRouting(orgId)
  const { modelId, fields, needs } = request
  const promptTokens = routedTokensOf(request)
  try {
    return deps.resolve({ modelId, kind: kind.modelKind, fields, org, policies: [], promptTokens, needs, accepts: model => request.accepts?.(model) })
  } catch (error) {
    if (error instanceof GatewayError) return null
    throw error
  }
}

/** Tries the routes in order until one answers, as `dial` does. */
async function tryInTurn(plan: Plan, ask: OrgRequest, cut: Cancellation, deps: ProbeDeps): Promise<ProbeResult> {
  const begunMs = deps.clock.monotonicMs()
  let code: ProbeFailure = 'no_route'
  for (const attempt of plan.attempts) {
    const result = await attemptOnce(attempt, ask, cut, deps)
    if (typeof result !== 'string' || result === 'limited') {
      return { kind: 'ok', provider: attempt.route.provider.id, latencyMs: Math.max(1, Math.round(deps.clock.monotonicMs() - begunMs)) }
    }
    code = result
  }
  return { kind: 'failed', code }
}

/**
 * Makes one call, and a second one with a higher limit when the provider refuses the limit. Returns the answer, or a word for the failure. `limited` means
 * that the model was reached and objected to nothing but the limit. Throws only when the call was cut.
 */
export async function attemptOnce(attempt: Attempt, ask: OrgRequest, cut: Cancellation, deps: InferenceDeps): Promise<ProbeFailure | 'limited' | Answered> {
  const first = await performed(attempt, ask, cut, deps)
  if (typeof first === 'string') return first
  if ('answer' in first) return first
  if (first.kind === 'failed') return failureOf(first)
  if (!isLimited(first)) return 'refused'
  const again = await performed(attempt, { ...ask, request: ask.request.withMaxTokens(secondTryTokens) }, cut, deps)
  if (typeof again === 'string') return again
  if ('answer' in again) return again
  if (again.kind === 'failed') return failureOf(again)
  return isLimited(again) ? 'limited' : 'refused'
}

const isLimited = ({ status, bytes }: ClientError): boolean => isAboutTheLimit(status, bytes.toString('utf8'))

/** Throws only when the canary was cut. */
async function performed(attempt: Attempt, { kind, request, orgId }: OrgRequest, cut: Cancellation, deps: InferenceDeps): Promise<Performed | ProbeFailure> {
  cut.throwIfAborted()
  try {
    const unseen = { ...deps, observer: nobody }
    const result = await kind.perform(attempt, { kind, request, orgId, signal: cut, deps: unseen, bill: () => nothing(attempt) })
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

/** An observer that ignores everything. A person who may ask for canaries must not be able to open the circuit of a shared route or to change its averages. */
const nobody: RouteObserver = {
  succeeded: () => {},
  failed: () => {},
  rateLimited: () => {},
  begins: () => true,
  undecided: () => {},
  refused: () => {},
  calledTools: () => {},
}
