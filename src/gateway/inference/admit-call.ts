import { GatewayError } from '../../platform/errors.ts'
import type { BearerPrincipal } from '../../platform/security/principal.ts'
import type { Permit } from '../limits/engine/admission.ts'
import type { OrgRouting } from '../routing/org-routing.ts'
import { resolveWithoutBalance } from '../routing/payer.ts'
import type { Plan, ResolveRequest } from '../routing/plan.ts'
import type { StickyCall } from '../routing/sticky/sticky-routes.ts'
import type { UsageEvent } from '../usage/events/record.ts'
import type { CappedRun } from '../usage/runs/caps/capped-runs.ts'
import { withinBalance, withinCallCaps, withinStrictHold } from './charge/call-caps.ts'
import { holdOf } from './charge/estimate.ts'
import type { ChargedAgent } from './charge/meter.ts'
import { ofOneVendor, stickyPlan } from './conversation/sticky-plan.ts'
import type { InferenceDeps } from './deps.ts'
import type { Kind } from './kinds/kind.ts'
import { type ParsedRequest, routedTokensOf } from './kinds/request.ts'

/** A call before admission. */
export interface AskedCall {
  readonly kind: Kind
  readonly parsed: ParsedRequest
  readonly principal: BearerPrincipal
  readonly agent: ChargedAgent
  readonly org: OrgRouting
  readonly eventId: string
  /** The id of the conversation that a header gives. */
  readonly conversation: string | undefined
  /** The run of the call, when it has caps. */
  readonly run: CappedRun | null
}

/** A call after admission: its plan, the request within its bounds, and the permit with its hold. */
export interface AdmittedCall {
  readonly plan: Plan
  readonly request: ParsedRequest
  /** The request for attempts that the prepaid balance pays for. It differs only for a last call. */
  readonly boundRequest: ParsedRequest
  readonly permit: Permit<UsageEvent>
  /** The call's part in its conversation. Null when the call cannot stay anywhere. */
  readonly sticky: StickyCall | null
}

/**
 * Plans a call and takes its first hold. The hold is taken in every budget, and also in the prepaid balance when a route of the plan uses the
 * platform's account. When the balance or the cap of free calls refuses, the function plans again with the organisation's own credentials only. It
 * dials nothing. Returns a promise only when the database must be asked. Throws all errors of `resolve` and of `Limits.admit`.
 */
export function admitCall(asked: AskedCall, deps: InferenceDeps): AdmittedCall | Promise<AdmittedCall> {
  const request = resolveRequestOf(asked)
  const { plan, sticky } = stickyPlan(asked, request, deps)
  const held = hold(plan, sticky, asked, deps)
  if (!(held instanceof Promise)) return held
  return held.catch((error: unknown) => {
    const own = isUnpaid(error) ? resolveWithoutBalance(request, deps.resolve) : null
    if (own === null) throw error
    return hold(ofOneVendor(own, request), null, asked, deps)
  })
}

/** Returns what a call asks of routing. */
export function resolveRequestOf({ kind, parsed, agent, org }: AskedCall): ResolveRequest {
  return {
    modelId: parsed.modelId,
    kind: kind.modelKind,
    fields: parsed.fields,
    org,
    policies: agent.policies,
    promptTokens: routedTokensOf(parsed),
    needs: parsed.needs,
    forwards: parsed.forwarded !== null,
    overflows: parsed.overflows === true,
    promptText: () => parsed.promptText(),
    accepts: model => parsed.accepts?.(model),
  }
}

/** Returns true when the platform's account pays nothing more for the caller: the balance is used up, or the free calls of a trial are. */
const isUnpaid = (error: unknown): boolean =>
  error instanceof GatewayError && (error.code === 'insufficient_credits' || error.errorName === 'trial_limit_reached')

function hold(
  plan: Plan,
  sticky: StickyCall | null,
  { kind, parsed, principal, agent, eventId, run }: AskedCall,
  deps: InferenceDeps,
): AdmittedCall | Promise<AdmittedCall> {
  const request = agent.policies.length === 0 ? parsed : withinCallCaps(kind, parsed, plan, agent.policies)
  const [first] = plan.attempts
  if (first !== undefined) request.checkFor?.(first)
  const { needUinr, worstUinr, leastUinr, debitUinr, outputTokens } = holdOf(kind, request, plan)
  const permit = deps.limits.admit({
    principal,
    eventId,
    agentId: agent.agentId,
    agentAncestorIds: agent.ancestorIds,
    policies: agent.policies,
    run,
    needUinr,
    worstUinr,
    promptTokens: request.promptTokens,
    outputTokens,
    leastUinr: kind.hasOutput && request.maxTokens === null ? leastUinr : undefined,
    debitUinr: isDebited(principal, deps) ? debitUinr : null,
    isFree: principal.isTrial === true && debitUinr !== null,
  })
  const admitted = (granted: Permit<UsageEvent>): AdmittedCall => {
    const held = withinStrictHold(kind, request, plan, granted.strictUinr)
    return { plan, request: held, boundRequest: withinBalance(kind, held, plan, granted.balanceLeftUinr), permit: granted, sticky }
  }
  return permit instanceof Promise ? permit.then(admitted) : admitted(permit)
}

/** Returns true when the prepaid balance pays for this caller's calls on the platform's account. */
export function isDebited(principal: BearerPrincipal, { isBilling }: Pick<InferenceDeps, 'isBilling'>): boolean {
  return isBilling && principal.isTrial !== true
}
