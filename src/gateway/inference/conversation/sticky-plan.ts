/** Plans a call where its conversation was served before. */
import { GatewayError } from '../../../platform/errors.ts'
import type { BearerPrincipal } from '../../../platform/security/principal.ts'
import { resolveAsPaid } from '../../routing/payer.ts'
import type { Plan, ResolveRequest } from '../../routing/plan.ts'
import { presetFor } from '../../routing/selection/choice.ts'
import { gainsByStaying, type StickyCall } from '../../routing/sticky/sticky-routes.ts'
import type { InferenceDeps } from '../deps.ts'
import type { Kind } from '../kinds/kind.ts'
import type { ParsedRequest } from '../kinds/request.ts'
import { CallConversation } from './conversation.ts'

/** The call that is planned. */
export interface PlannedCall {
  readonly kind: Kind
  readonly parsed: ParsedRequest
  readonly principal: BearerPrincipal
  /** The id of the conversation that a header gives. */
  readonly conversation: string | undefined
}

/** A plan, and the call's part in its conversation. Null when the call cannot stay anywhere: a plan with one route, or an order that somebody chose. */
export interface StickyPlan {
  readonly plan: Plan
  readonly sticky: StickyCall | null
}

/** Returns the plan of a call. Throws all errors of `resolve`. */
export function stickyPlan(asked: PlannedCall, request: ResolveRequest, deps: InferenceDeps): StickyPlan {
  const { kind, principal } = asked
  const { isTrial } = principal
  // The order of a chain is the decision of the person who wrote it.
  if (deps.sticky === undefined || kind.modelKind !== 'chat' || request.fields.fallbacks !== null) return withoutSticky(request, isTrial, deps)
  const conversation = new CallConversation(asked.parsed, asked.conversation)
  const named = conversation.named === null ? request : { ...request, tieKey: conversation.named }
  if (request.fields.best || presetFor(request) !== undefined) {
    const sticky = deps.sticky.begin(request, conversation, true)
    const { keptModel } = sticky
    const plan = resolveAsPaid(isTrial, keptModel === null ? named : { ...named, keptModel }, deps.resolve)
    const ordered = sticky.order(plan)
    if (keptModel === null) return { plan: ordered, sticky }
    return fitting(asked, ordered, sticky, () => resolveAsPaid(isTrial, named, deps.resolve))
  }
  const plan = resolveAsPaid(isTrial, named, deps.resolve)
  if (!canStay(plan) || request.org.chains.has(plan.model.id)) return { plan, sticky: null }
  const sticky = deps.sticky.begin(request, conversation, false)
  const ordered = sticky.order(plan)
  return ordered === plan ? { plan, sticky } : fitting(asked, ordered, sticky, () => plan)
}

const withoutSticky = (request: ResolveRequest, isTrial: boolean | undefined, deps: InferenceDeps): StickyPlan => ({
  plan: ofOneVendor(resolveAsPaid(isTrial, request, deps.resolve), request),
  sticky: null,
})

/**
 * Returns the plan of a moderation with the attempts of one vendor: the first one in the catalog that the call may use, whatever its price and state.
 * Vendors have other categories, so calls never change their vendor by themselves. A chain is the decision of the person who wrote it. Other plans are unchanged.
 */
export function ofOneVendor(plan: Plan, { kind, fields, org }: ResolveRequest): Plan {
  if (kind !== 'moderation' || fields.fallbacks !== null || org.chains.has(plan.model.id)) return plan
  const placeOf = ({ route }: Plan['attempts'][number]): number => plan.model.routes.findIndex(({ provider }) => provider.id === route.provider.id)
  const [first] = plan.attempts.toSorted((a, b) => placeOf(a) - placeOf(b))
  return { ...plan, attempts: plan.attempts.filter(({ route }) => route.provider.id === first?.route.provider.id) }
}

/** Returns true for a plan with several routes, of which one has a cache that is worth staying for. */
const canStay = ({ attempts }: Plan): boolean =>
  attempts.length > 1 && attempts.some(({ route }) => route !== attempts[0]?.route) && attempts.some(({ route }) => gainsByStaying(route))

/** Returns the plan, or `otherwise()` when the first route of the plan cannot express the request. */
function fitting({ parsed }: PlannedCall, plan: Plan, sticky: StickyCall, otherwise: () => Plan): StickyPlan {
  const [first] = plan.attempts
  try {
    if (first !== undefined) parsed.checkFor?.(first)
    return { plan, sticky }
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    sticky.leave()
    return { plan: otherwise(), sticky }
  }
}
