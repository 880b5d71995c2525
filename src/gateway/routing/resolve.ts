import type { Clock } from '../../platform/clock.ts'
import { fail, type GatewayError } from '../../platform/errors.ts'
import { Secret } from '../../platform/secret.ts'
import { type CatalogSnapshot, type Model, routeId, stateKeyOf } from '../catalog/model.ts'
import { isSandbox } from '../catalog/sandbox.ts'
import { type Preset, presetOf } from '../catalog/virtual-models.ts'
import { brHeader, headerValue } from '../wire/response-headers.ts'
import type { ChainStep } from '../wire/router-fields.ts'
import { type Candidate, type Credentials, candidatesOf, isExcluded, meetsResidency, withCredential, withRequestKey } from './candidates.ts'
import type { Circuits } from './circuit.ts'
import type { OrgRouting } from './org-routing.ts'
import { pickModel } from './pick-model.ts'
import type { Attempt, Plan, ResolveRequest } from './plan.ts'
import { type Preference, type RouteFacts, rank } from './rank.ts'
import type { RouteHealth } from './route-health.ts'

/** What resolving looks at. It dials nothing and changes nothing but the count of rankings that makes probes due. */
export interface RoutingWorld {
  readonly catalog: CatalogSnapshot
  readonly circuits: Circuits
  readonly health: RouteHealth
  readonly clock: Clock
}

/**
 * Where a call may go, in order. A pinned provider wins over `fallbacks`, which win over the model's own routes. Throws
 * `model_not_found`, `model_gated`, `no_route_virtual`, `no_route`, `no_route_residency` or `byok_required`: the first cause that
 * applies, in the order pin, residency, exclude, credentials.
 */
export function resolve(request: ResolveRequest, world: RoutingWorld): Plan {
  const { fields, kind, modelId } = request
  const entry = presetOf(modelId)
  const chain = fields.provider === null ? fields.fallbacks : null
  if (entry && (kind !== 'chat' || chain === null)) return resolveVirtual(entry, request, world)
  const model = entry ? null : modelOf(request, world)
  const steps = chain === null ? [ownCandidates(model, fields.provider)] : chainCandidates(chain, request, world)
  return plan(attemptsOf(steps, request, world), {})
}

function plan(attempts: readonly Attempt[], headers: Readonly<Record<string, string>>): Plan {
  const [first] = attempts
  if (!first) throw fail('no_route')
  return { model: first.model, attempts, headers }
}

function modelOf({ modelId, kind, org }: ResolveRequest, world: RoutingWorld): Model {
  const model = world.catalog.models.get(modelId)
  if (!model) throw unknownModel(modelId, org, world)
  if (model.kind !== kind) throw fail('no_route', { message: `"${model.id}" is no ${kind} model. Nothing was dialed.` })
  if (model.gated && org.retentionDays === 0) throw fail('model_gated')
  return model
}

/** `provider/model` is the shape of models on a caller's own key: without that key there is no route, with it the id is unknown. */
function unknownModel(modelId: string, org: OrgRouting, world: RoutingWorld): GatewayError {
  const slash = modelId.indexOf('/')
  const provider = slash > 0 ? world.catalog.providers.get(modelId.slice(0, slash)) : undefined
  if (!provider?.byok || org.savedKeys.has(provider.id)) return fail('model_not_found')
  return fail('no_route', { message: `This id runs on your own ${provider.name} key, and none is saved. Nothing was dialed.` })
}

type Steps = readonly (readonly Candidate[])[]

function ownCandidates(model: Model | null, pinned: string | null): readonly Candidate[] {
  const candidates = model === null ? [] : candidatesOf(model)
  if (pinned === null) return candidates
  const served = candidates.filter(({ route }) => route.provider.id === pinned)
  if (served.length === 0) throw fail('no_route', { message: 'The pinned provider does not serve this model. Nothing was dialed.' })
  return served
}

function chainCandidates(chain: readonly ChainStep[], request: ResolveRequest, world: RoutingWorld): Steps {
  const steps = chain.map(step => stepCandidates(step, request, world))
  if (steps.every(step => step.length === 0)) throw fail('no_route', { message: 'No step of the chain resolves to a route. Nothing was dialed.' })
  return steps
}

/** A step that cannot be resolved is skipped. */
function stepCandidates(step: ChainStep, request: ResolveRequest, world: RoutingWorld): readonly Candidate[] {
  const entry = presetOf(step.model)
  const onProvider = (candidates: readonly Candidate[]): readonly Candidate[] =>
    step.provider === null ? candidates : candidates.filter(({ route }) => route.provider.id === step.provider)
  if (entry) return onProvider(request.kind === 'chat' ? (pick(entry, request, world)?.candidates ?? []) : [])
  const model = world.catalog.models.get(step.model)
  if (model?.kind !== request.kind || (model.gated && request.org.retentionDays === 0)) return []
  return onProvider(candidatesOf(model))
}

function attemptsOf(steps: Steps, request: ResolveRequest, world: RoutingWorld): readonly Attempt[] {
  const { fields } = request
  const resident = steps.map(step => step.filter(candidate => meetsResidency(candidate, fields)))
  if (resident.every(step => step.length === 0)) throw fail('no_route_residency', { message: 'No India-resident route serves this. Nothing was dialed.' })
  const allowed = resident.map(step => step.filter(candidate => !isExcluded(candidate, fields)))
  if (allowed.every(step => step.length === 0)) throw fail('no_route_residency', { message: '"exclude" leaves no route. Nothing was dialed.' })
  const ready = allowed.map(step => reachable(step, request, world))
  if (ready.every(step => step.length === 0)) throw withoutCredential(allowed.flat())
  const preference: Preference = { optimize: fields.optimize, weights: fields.weights, probe: ranksByLatency(fields.optimize) && world.health.probeIsDue() }
  const ordered = unique(ready.flatMap(step => inOrder(step, preference, world)))
  if (fields.upstreamKey === null) return ordered
  // A caller's key goes to one company only.
  return ordered.filter(attempt => attempt.route.provider.id === ordered[0]?.route.provider.id)
}

const ranksByLatency = (mode: Preference['optimize']): boolean => mode === 'latency'

function reachable(candidates: readonly Candidate[], request: ResolveRequest, world: RoutingWorld): readonly Attempt[] {
  const { upstreamKey, provider } = request.fields
  if (upstreamKey !== null) return withRequestKey(candidates, new Secret(upstreamKey), provider !== null, keyShapes(world.catalog))
  const credentials: Credentials = {
    savedKey: providerId => request.org.savedKeys.get(providerId)?.key ?? null,
    inMaintenance: id => world.health.inMaintenance(id),
  }
  return candidates.flatMap(candidate => withCredential(candidate, credentials) ?? [])
}

const keyShapes = (catalog: CatalogSnapshot): ReadonlyMap<string, string> =>
  new Map([...catalog.providers.values()].flatMap(({ id, keyShape }) => (keyShape === null ? [] : [[id, keyShape] as const])))

function withoutCredential(left: readonly Candidate[]): GatewayError {
  // Such models are also reached in the provider's own wire format, with a credential that the caller forwards.
  if (left.some(({ route }) => route.byokOnly && route.provider.dialect === 'anthropic')) return fail('byok_required')
  const ids = [...new Set(left.map(({ route }) => route.provider.id))].join(', ')
  return fail('no_route', { message: `No route can be used: ${ids} is not configured here, withheld, or needs your own key. Nothing was dialed.` })
}

/** The platform's routes come before those on a saved key; within each the wish of the caller decides, open circuits last. */
function inOrder(attempts: readonly Attempt[], preference: Preference, world: RoutingWorld): readonly Attempt[] {
  if (attempts.length < 2) return attempts
  return [false, true].flatMap(byok => {
    const own = attempts.filter(attempt => attempt.byok === byok)
    const byRoute = new Map(own.map(attempt => [attempt.route, attempt]))
    return rank([...byRoute.keys()], route => factsOf(stateKeyOf(route), world), preference).flatMap(route => byRoute.get(route) ?? [])
  })
}

function factsOf(id: string, { circuits, health, clock }: RoutingWorld): RouteFacts {
  return { ...health.measurements(id), open: circuits.isOpen(id, clock.nowMs()) }
}

function unique(attempts: readonly Attempt[]): readonly Attempt[] {
  if (attempts.length < 2) return attempts
  return [...new Map(attempts.map(attempt => [routeId(attempt.route), attempt])).values()]
}

interface Picked {
  readonly modelId: string
  readonly candidates: readonly Candidate[]
  readonly reason: string
}

/** The model that a preset chooses for this caller, with its admitted routes; null when nothing reachable satisfies it. */
function pick(entry: Preset, request: ResolveRequest, world: RoutingWorld): Picked | null {
  const { fields } = request
  const chats = [...world.catalog.models.values()].filter(model => model.kind === 'chat' && (!model.gated || request.org.retentionDays > 0))
  const everything = reachable(chats.flatMap(candidatesOf), request, world)
  const real = everything.filter(({ route }) => !isSandbox(route.provider))
  const allowed = (real.length > 0 ? real : everything).filter(
    attempt => meetsResidency(attempt, fields) && !isExcluded(attempt, fields) && (fields.provider === null || attempt.route.provider.id === fields.provider),
  )
  const picked = pickModel(
    entry,
    allowed,
    request,
    attempt => factsOf(stateKeyOf(attempt.route), world),
    entry.preset === 'fastest' && world.health.probeIsDue(),
  )
  if (!picked) return null
  const candidates = allowed.filter(({ model, route }) => model.id === picked.modelId && entry.admits(model, route))
  return { modelId: picked.modelId, candidates, reason: picked.reason }
}

function resolveVirtual(entry: Preset, request: ResolveRequest, world: RoutingWorld): Plan {
  const picked = request.kind === 'chat' ? pick(entry, request, world) : null
  if (!picked) throw fail('no_route_virtual')
  const attempts = attemptsOf([picked.candidates], request, world)
  return plan(attempts, { [brHeader.autoPreset]: entry.preset, [brHeader.autoModel]: headerValue(picked.modelId), [brHeader.autoReason]: picked.reason })
}
