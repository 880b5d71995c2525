import { fail, type GatewayError } from '../../platform/errors.ts'
import { type Allowance, allowanceOf } from '../catalog/allowance.ts'
import { type Preset, presetOf } from '../catalog/virtual-models.ts'
import { brHeader, headerValue } from '../wire/response-headers.ts'
import { type Candidate, isExcluded, meetsResidency } from './candidates.ts'
import { inOrder, reachable, unique } from './order.ts'
import { pick } from './pick-candidates.ts'
import type { Attempt, Plan, ResolveRequest } from './plan.ts'
import type { Preference } from './rank.ts'
import type { RoutingWorld } from './routing-world.ts'
import { chainCandidates, checkPin, isMedia, namedModel, ownCandidates, type Steps } from './steps.ts'

/**
 * Where a call may go, in order. A pinned provider wins over `fallbacks`, which win over the chain that the organisation has saved for
 * the model, which wins over the model's own routes. Throws `model_not_found`, `model_not_allowed`, `model_gated`, `no_route_virtual`,
 * `no_route`, `no_route_residency` or `byok_required`: the first cause that applies, in the order lookup, rules of the credential, gate,
 * pin, residency, exclude, credentials.
 */
export function resolve(request: ResolveRequest, world: RoutingWorld): Plan {
  const { fields, kind, modelId, org } = request
  const allowance = allowanceOf(request.policies)
  const chain = fields.provider === null ? fields.fallbacks : null
  const entry = presetOf(modelId)
  // What makes images and audio is always named: a virtual id is as unknown there as any other word.
  if (entry && isMedia(kind)) throw fail('model_not_found_media', { message: 'Virtual ids choose chat models. GET /v1/models lists the models of this kind.' })
  if (entry) {
    if (kind !== 'chat' || chain === null) return resolveVirtual(entry, request, world, allowance)
    return planOf(chainCandidates(chain, request, world), request, world, noHeaders)
  }
  const model = namedModel(request, world, allowance)
  const steps = chain ?? (fields.provider === null ? org.chains.get(model.id) : undefined)
  return planOf(steps === undefined ? [ownCandidates(model, request, allowance)] : chainCandidates(steps, request, world), request, world, noHeaders)
}

const noHeaders: Plan['headers'] = Object.freeze({})

function resolveVirtual(entry: Preset, request: ResolveRequest, world: RoutingWorld, allowance: Allowance | null): Plan {
  checkPin(request, allowance)
  const picked = request.kind === 'chat' ? pick(entry, request, world) : null
  if (!picked) throw nothingPicked(entry, request, world, allowance)
  const headers = { [brHeader.autoPreset]: entry.preset, [brHeader.autoModel]: headerValue(picked.modelId), [brHeader.autoReason]: picked.reason }
  return planOf([picked.candidates], request, world, headers)
}

/** It is the credential's rules when without them something could be picked. */
function nothingPicked(entry: Preset, request: ResolveRequest, world: RoutingWorld, allowance: Allowance | null): GatewayError {
  if (allowance === null || request.kind !== 'chat' || pick(entry, { ...request, policies: [] }, world) === null) return fail('no_route_virtual')
  return fail('model_not_allowed', { message: `This credential may use no model that "${entry.id}" could pick now.` })
}

function planOf(steps: Steps, request: ResolveRequest, world: RoutingWorld, headers: Plan['headers']): Plan {
  const attempts = attemptsOf(steps, request, world)
  const [first] = attempts
  if (!first) throw fail('no_route')
  return { model: first.model, attempts, headers }
}

function attemptsOf(steps: Steps, request: ResolveRequest, world: RoutingWorld): readonly Attempt[] {
  const { fields } = request
  const allowed = within(steps, request)
  const ready = allowed.map(step => reachable(step, request, world))
  if (ready.every(step => step.length === 0)) throw withoutCredential(allowed.flat())
  const preference: Preference = { optimize: fields.optimize, weights: fields.weights, probe: fields.optimize === 'latency' && world.health.probeIsDue() }
  const ordered = unique(ready.flatMap(step => inOrder(step, request, preference, world)))
  if (fields.upstreamKey === null) return ordered
  // A caller's key goes to one company only.
  return ordered.filter(attempt => attempt.route.provider.id === ordered[0]?.route.provider.id)
}

/** The steps without what the hard constraints forbid. Throws `no_route_residency` when they leave nothing. */
function within(steps: Steps, { fields }: ResolveRequest): Steps {
  if (!fields.indiaOnly && fields.exclude.length === 0) return steps
  const resident = steps.map(step => step.filter(candidate => meetsResidency(candidate, fields)))
  if (resident.every(step => step.length === 0)) throw fail('no_route_residency', { message: 'No India-resident route serves this. Nothing was dialed.' })
  const left = resident.map(step => step.filter(candidate => !isExcluded(candidate, fields)))
  if (left.every(step => step.length === 0)) throw fail('no_route_residency', { message: '"exclude" leaves no route. Nothing was dialed.' })
  return left
}

function withoutCredential(left: readonly Candidate[]): GatewayError {
  // Such models are also reached in the provider's own wire format, with a credential that the caller forwards.
  if (left.some(({ route }) => route.byokOnly && route.provider.dialect === 'anthropic')) return fail('byok_required')
  const ids = [...new Set(left.map(({ route }) => route.provider.id))].join(', ')
  return fail('no_route', { message: `No route can be used: ${ids} is not configured here, withheld, or needs your own key. Nothing was dialed.` })
}
