import { keyVariableOf } from '../../platform/config.ts'
import { fail, type GatewayError } from '../../platform/errors.ts'
import { type Allowance, allowanceOf } from '../catalog/allowance.ts'
import { isSandbox } from '../catalog/loading/sandbox.ts'
import { type Preset, presetOf } from '../catalog/virtual-models.ts'
import { type Candidate, isExcluded, meetsResidency } from './candidates.ts'
import type { Attempt, Plan, ResolveRequest } from './plan.ts'
import type { RoutingWorld } from './routing-world.ts'
import { failOpenHeaders, presetFor, presetHeaders } from './selection/choice.ts'
import { inOrder, reachable, unique } from './selection/order.ts'
import { type Picked, pick, pickRanked } from './selection/pick-candidates.ts'
import type { Preference, RankMode } from './selection/rank.ts'
import { chainCandidates, checkPin, isMedia, namedModel, ownCandidates, type Steps } from './steps.ts'

/**
 * Returns the attempts that a call may make, in order. A pinned provider takes precedence over `fallbacks`, `fallbacks` over the organisation's saved
 * chain, and the chain over the model's own routes. Throws `model_not_found`, `model_not_allowed`, `model_gated`, `no_route_virtual`, `no_route`,
 * `no_route_residency` or `byok_required`. When several apply, the first in this order of checks wins: look-up, rules of the credential, gate, pin,
 * residency, exclude, credentials. Decision 0043 gives the reasons.
 */
export function resolve(request: ResolveRequest, world: RoutingWorld): Plan {
  const { fields, kind, org } = request
  const allowance = allowanceOf(request.policies)
  const chain = fields.provider === null ? fields.fallbacks : null
  const entry = presetFor(request)
  // Image and audio models must be named. For these kinds, a virtual id counts as unknown.
  if (entry && isMedia(kind)) throw fail('model_not_found_media', { message: 'Virtual ids choose chat models. GET /v1/models lists the models of this kind.' })
  if (entry) {
    if (kind !== 'chat' || chain === null) return resolveVirtual(entry, request, world, allowance)
    return planOf(chainCandidates(chain, request, world), request, world)
  }
  const model = namedModel(request, world, allowance)
  const best = fields.best && kind === 'chat' && chain === null
  const predicted = best ? pickRanked(request, world) : null
  if (predicted !== null) return planOfPick(predicted, { optimize: fields.optimize }, request, world, presetHeaders(bestPreset(), predicted, request))
  const steps = chain ?? (fields.provider === null ? org.chains.get(model.id) : undefined)
  const plan = planOf(steps === undefined ? [ownCandidates(model, request, allowance)] : chainCandidates(steps, request, world), request, world)
  return best ? { ...plan, headers: failOpenHeaders(request, plan) } : plan
}

const noHeaders: Plan['headers'] = Object.freeze({})

function bestPreset(): Preset {
  const entry = presetOf('best')
  if (!entry) throw new Error('auto:best is a preset')
  return entry
}

function resolveVirtual(entry: Preset, request: ResolveRequest, world: RoutingWorld, allowance: Allowance | null): Plan {
  checkPin(request, allowance)
  const picked = request.kind === 'chat' ? pick(entry, request, world) : null
  if (!picked) throw nothingPicked(entry, request, world, allowance)
  return planOfPick(picked, { optimize: modeOf(entry, request) }, request, world, presetHeaders(entry, picked, request))
}

/** Returns how the preset orders the routes of its model. An `optimize` of the caller takes precedence, unless it has the default value. */
function modeOf(entry: Preset, { fields }: ResolveRequest): RankMode {
  if (fields.optimize !== 'price') return fields.optimize
  return entry.preset === 'fastest' ? 'latency' : entry.preset === 'long-context' ? 'window' : 'price'
}

/** Makes the plan from the routes that the preset admits. Failover therefore reaches no other route. */
function planOfPick(picked: Picked, { optimize }: Pick<Preference, 'optimize'>, request: ResolveRequest, world: RoutingWorld, headers: Plan['headers']): Plan {
  return planOf([picked.candidates], request, world, headers, { optimize, weights: request.fields.weights, probe: picked.probe, tieKey: request.tieKey })
}

/** Returns `model_not_allowed` when only the rules of the credential keep the preset from choosing a model. Otherwise returns `no_route_virtual`. */
function nothingPicked(entry: Preset, request: ResolveRequest, world: RoutingWorld, allowance: Allowance | null): GatewayError {
  if (allowance === null || request.kind !== 'chat' || pick(entry, { ...request, policies: [] }, world) === null) return fail('no_route_virtual')
  return fail('model_not_allowed', { message: `This credential may use no model that "${entry.id}" could pick now.` })
}

function planOf(steps: Steps, request: ResolveRequest, world: RoutingWorld, headers: Plan['headers'] = noHeaders, preference?: Preference): Plan {
  const attempts = attemptsOf(steps, request, world, preference ?? paramsOf(request, world))
  const [first] = attempts
  if (!first) throw fail('no_route')
  return { model: first.model, attempts, headers }
}

const paramsOf = ({ fields: { optimize, weights }, tieKey }: ResolveRequest, { health }: RoutingWorld): Preference => ({
  optimize,
  weights,
  probe: weights === null && optimize === 'latency' && health.probeIsDue(),
  tieKey,
})

function attemptsOf(steps: Steps, request: ResolveRequest, world: RoutingWorld, preference: Preference): readonly Attempt[] {
  const { fields } = request
  const allowed = within(steps, request)
  const reached = allowed.map(step => reachable(step, request, world))
  const ready = request.kind === 'image' ? reached.map(beforeSandbox) : reached
  if (ready.every(step => step.length === 0)) throw withoutCredential(allowed.flat(), request, world)
  const ordered = unique(ready.flatMap(step => inOrder(step, request, preference, world)))
  if (fields.upstreamKey === null) return ordered
  // A key from the request goes to one provider only.
  return ordered.filter(attempt => attempt.route.provider.id === ordered[0]?.route.provider.id)
}

/** Removes simulated routes when a real route is reachable. Otherwise the failure of a provider could lead to a simulated image. */
function beforeSandbox(step: readonly Attempt[]): readonly Attempt[] {
  const real = step.filter(({ route }) => !isSandbox(route.provider))
  return real.length > 0 ? real : step
}

/** Removes the routes that `india_only` and `exclude` forbid. Throws `no_route_residency` when no route is left. */
function within(steps: Steps, { fields }: ResolveRequest): Steps {
  if (!fields.indiaOnly && fields.exclude.length === 0) return steps
  const resident = steps.map(step => step.filter(candidate => meetsResidency(candidate, fields)))
  if (resident.every(step => step.length === 0)) throw fail('no_route_residency', { message: 'No India-resident route serves this. No provider was called.' })
  const left = resident.map(step => step.filter(candidate => !isExcluded(candidate, fields)))
  if (left.every(step => step.length === 0)) throw fail('no_route_residency', { message: '"exclude" leaves no route. No provider was called.' })
  return left
}

/** Returns the error for routes that no credential can serve: `byok_required` or `no_route`. The message says what the caller can do. */
export function withoutCredential(left: readonly Candidate[], { fields, kind }: ResolveRequest, { catalog }: RoutingWorld): GatewayError {
  // These models can also be called in the provider's own wire format, with a credential that the gateway forwards.
  const native = left.find(({ route: { byokOnly, provider } }) => byokOnly && provider.dialect === 'anthropic' && provider.cloud === undefined)
  if (native) return fail('byok_required', { message: byokRequired(native.route.provider.id) })
  const ids = [...new Set(left.map(({ route }) => route.provider.id))]
  const takers = [...new Set(left.flatMap(({ route: { provider } }) => (provider.byok ? [provider.id] : [])))]
  const why = fields.upstreamKey === null ? whyUnreachable(left) : `"upstream_key" is of no use for ${listed(ids)}.`
  const servesWithout = left.some(({ route }) => route.provider.configured && !route.byokOnly)
  const without = fields.upstreamKey !== null && servesWithout ? ' Leave it out, and the call runs at the expense of this gateway.' : ''
  const own = takers.length === 0 ? '' : ` Save your own key (PUT /me/byok/${takers[0]}), or send it as "upstream_key".`
  const simulated = [...catalog.models.values()].find(model => model.kind === kind && model.routes.every(({ provider }) => isSandbox(provider)))
  const instead = simulated === undefined ? ' GET /v1/models lists the models.' : ` Without any key: "${simulated.id}", simulated.`
  return fail('no_route', { message: `No route can be used: ${why}${without}${own}${instead} No provider was called.` })
}

/** Returns the settings by which the operator configures a provider. */
const settingsOf = ({ id, keyVariable, missing }: Candidate['route']['provider']): readonly string[] => missing ?? [keyVariable ?? keyVariableOf(id)]

/** Returns one sentence for each reason why the platform's keys serve none of the routes, with the setting that changes it. */
function whyUnreachable(left: readonly Candidate[]): string {
  const providersOf = (fits: (route: Candidate['route']) => boolean) => [...new Set(left.filter(({ route }) => fits(route)).map(({ route }) => route.provider))]
  const idsOf = (fits: (route: Candidate['route']) => boolean): string[] => providersOf(fits).map(({ id }) => id)
  const sentence = (ids: readonly string[], said: string): string[] => (ids.length === 0 ? [] : [`${listed(ids)} ${ids.length === 1 ? 'is' : 'are'} ${said}`])
  const missing = providersOf(({ provider }) => !provider.configured && !provider.userGiven)
  return [
    ...sentence(
      missing.map(({ id }) => id),
      `not configured here. The operator can set ${listed([...new Set(missing.flatMap(settingsOf))])}.`,
    ),
    ...sentence(
      idsOf(({ provider, byokOnly }) => provider.configured && byokOnly),
      'for your own key only.',
    ),
    ...sentence(
      idsOf(({ provider, byokOnly }) => (provider.configured && !byokOnly) || (!provider.configured && provider.userGiven === true)),
      'withheld now.',
    ),
  ].join(' ')
}

const byokRequired = (provider: string): string =>
  `This model runs on your own ${provider} credential only. Save one (PUT /me/byok/${provider}) or, at /v1/messages, send it along with the gateway key in x-br-api-key. Or choose another model of GET /v1/models; in Claude Code with ANTHROPIC_MODEL and ANTHROPIC_DEFAULT_HAIKU_MODEL.`

const listed = (ids: readonly string[]): string => (ids.length < 2 ? ids.join('') : `${ids.slice(0, -1).join(', ')} and ${ids.at(-1)}`)
