/** Explains in words why a call goes where it goes, and lists every considered route. It applies the rules of `resolve` and decides nothing itself. */

import { routeOfCustom } from '../../byok/custom-servers/custom-route.ts'
import { allowanceOf } from '../../catalog/allowance.ts'
import { isSandbox } from '../../catalog/loading/sandbox.ts'
import { type Model, routeId, stateKeyOf } from '../../catalog/model.ts'
import { type Preset, presetOf } from '../../catalog/virtual-models.ts'
import type { ChainStep } from '../../wire/chat/router-fields.ts'
import { brHeader } from '../../wire/response-headers.ts'
import { type Candidate, candidatesOf, isExcluded, meetsResidency } from '../candidates.ts'
import { isCustomReference, ownModel } from '../own-models.ts'
import type { Attempt, Plan, ResolveRequest } from '../plan.ts'
import { factsOf, type RoutingWorld } from '../routing-world.ts'
import { chooserOf } from '../selection/choice.ts'
import { reachable } from '../selection/order.ts'
import { canServe, corruptsToolCalls } from '../selection/pick-model.ts'

/** One considered route, or a chain step without a route. For a step without a route, `provider` is null unless the step names one. */
export interface Explained {
  readonly model: string
  readonly provider: string | null
  /** Whether the plan contains the route. */
  readonly eligible: boolean
  readonly why: string
}

/** Returns the rule that chose the first route, as an identifier for programs. */
export function reasonOf(plan: Plan, { fields, org, modelId }: ResolveRequest): string {
  const [first] = plan.attempts
  const { [brHeader.autoReason]: preset, [brHeader.routeReason]: best } = plan.headers
  if (preset !== undefined || best !== undefined) return preset ?? best ?? ''
  if (fields.provider !== null) return 'pinned_provider'
  if (fields.fallbacks !== null) return 'request_fallbacks'
  if (presetOf(modelId) === undefined && org.chains.has(modelId)) return 'saved_chain'
  if (first?.byok && fields.upstreamKey !== null) return 'upstream_key'
  if (first?.byok) return org.savedKeys.get(first.route.provider.id)?.alwaysUse ? 'own_key_first' : 'own_key'
  if (plan.attempts.length === 1) return 'only_route'
  return fields.weights === null ? `optimize_${fields.optimize}` : 'optimize_weights'
}

/** Returns the routes of the plan in the order of their attempts. All other considered routes follow. Each of those has the reason against it. */
export function explain(plan: Plan, request: ResolveRequest, world: RoutingWorld): readonly Explained[] {
  const chosen = new Map<string, Attempt[]>()
  for (const attempt of plan.attempts) chosen.set(routeId(attempt.route), [...(chosen.get(routeId(attempt.route)) ?? []), attempt])
  const dialed = [...chosen.values()].map((attempts, index) => eligible(attempts, index, world))
  const { candidates, unresolved } = considered(plan, request, world)
  const rest = new Map(candidates.filter(({ route }) => !chosen.has(routeId(route))).map(candidate => [routeId(candidate.route), candidate]))
  const others = [...rest.values()].map(candidate => ({
    model: candidate.model.id,
    provider: candidate.route.provider.id,
    eligible: false,
    why: whyNot(candidate, plan, request, world),
  }))
  return [...dialed, ...others, ...unresolved]
}

function eligible(attempts: readonly Attempt[], index: number, world: RoutingWorld): Explained {
  const [first] = attempts
  if (!first) throw new Error('a route of a plan has attempts')
  const keys = attempts
    .map(({ byok, route }) => (byok ? (route.provider.userGiven ? 'your own server' : 'your own key') : "the platform's key"))
    .join(', then ')
  const open = factsOf(first.route, world).open ? '; its circuit is open, so it comes after routes that work' : ''
  const place = index === 0 ? 'dialed first' : `dialed as number ${index + 1}, when those before it fail`
  return { model: first.model.id, provider: first.route.provider.id, eligible: true, why: `${place}, on ${keys}${open}` }
}

interface Considered {
  readonly candidates: readonly Candidate[]
  /** Steps of a chain without a route. */
  readonly unresolved: readonly Explained[]
}

function considered(plan: Plan, request: ResolveRequest, world: RoutingWorld): Considered {
  const { fields, modelId, org } = request
  const entry = chooserOf(plan, request)
  const chain = fields.provider !== null ? undefined : (fields.fallbacks ?? (entry ? undefined : org.chains.get(modelId)))
  if (chain !== undefined) return consideredInChain(chain, request, world)
  if (entry) return { candidates: pairsOf(entry, world), unresolved: [] }
  const model = world.catalog.models.get(modelId) ?? ownModel(modelId, request, world.catalog)
  return { candidates: model ? [...candidatesOf(model), ...customOf(model, request)] : [], unresolved: [] }
}

function consideredInChain(chain: readonly ChainStep[], request: ResolveRequest, world: RoutingWorld): Considered {
  const candidates: Candidate[] = []
  const unresolved: Explained[] = []
  for (const step of chain) {
    const entry = presetOf(step.model)
    const model = world.catalog.models.get(step.model) ?? ownModel(step.model, request, world.catalog)
    const all = entry ? pairsOf(entry, world) : model && model.kind === request.kind ? [...candidatesOf(model), ...customOf(model, request)] : []
    const found = all.filter(({ route }) => (step.provider === null ? !route.provider.userGiven : route.provider.id === step.provider))
    candidates.push(...found)
    if (found.length === 0)
      unresolved.push({ model: step.model, provider: step.provider, eligible: false, why: 'this step stands for no route now, so it is skipped' })
  }
  return { candidates, unresolved }
}

const pairsOf = (entry: Preset, { catalog }: RoutingWorld): readonly Candidate[] =>
  [...catalog.models.values()].filter(({ kind }) => kind === 'chat').flatMap(model => candidatesOf(model).filter(({ route }) => entry.admits(model, route)))

const customOf = (model: Model, { org }: ResolveRequest): readonly Candidate[] =>
  [...org.customRoutes.values()].filter(custom => custom.modelId === model.id).map(custom => ({ model, route: routeOfCustom(custom, model) }))

/** Returns the first reason against a route that is not in the plan. The reasons are checked in the order of `resolve`. */
function whyNot(candidate: Candidate, plan: Plan, request: ResolveRequest, world: RoutingWorld): string {
  const { model, route } = candidate
  const { fields, org } = request
  const allowance = allowanceOf(request.policies)
  const entry = chooserOf(plan, request)
  const isPickable = entry !== undefined && (allowance?.pick(entry.id, model.id) ?? true)
  if (allowance !== null && !((isPickable || allowance.model(model.id)) && allowance.provider(route.provider.id))) return 'this credential may not use it'
  if (model.gated && org.retentionDays === 0) return 'the model needs a data-retention window, which is off'
  if (fields.provider !== null && route.provider.id !== fields.provider) return 'another provider is pinned'
  if (isCustomReference(route.provider.id) && fields.fallbacks === null && fields.provider === null)
    return `used only when it is named: "provider": "${route.provider.id}"`
  if (!meetsResidency(candidate, fields)) return 'not proven to be in India'
  if (isExcluded(candidate, fields)) return 'excluded by the request'
  if (reachable([candidate], request, world).length === 0) return withoutCredential(candidate, request, world)
  if (request.kind === 'image' && isSandbox(route.provider)) return 'simulated pictures are for callers who can reach no other provider'
  if (fields.upstreamKey !== null) return 'upstream_key goes to one provider only, and this is another'
  if (entry?.preset === 'agent' && corruptsToolCalls(candidate, factsOf(route, world), world.catalog.rankings))
    return 'known to break the arguments of tool calls'
  if (entry && !canServe(candidate, request, entry)) return 'the model does not take what the request carries'
  return `another model was picked: "${plan.model.id}"`
}

function withoutCredential({ route }: Candidate, { fields }: ResolveRequest, { health }: RoutingWorld): string {
  const { provider } = route
  if (fields.upstreamKey !== null) return provider.byok ? 'upstream_key looks like a key of another provider' : 'the provider takes no keys of callers'
  if (route.byokOnly) return 'runs on your own provider key only, and none is saved'
  if (!provider.configured) return 'the provider is not configured here, and you have saved no key of your own'
  if (health.inMaintenance(stateKeyOf(route))) return "the platform's route is withheld for maintenance, and you have saved no key of your own"
  return 'no credential serves it'
}
