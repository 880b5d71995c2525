import type { Secret } from '../../platform/security/secret.ts'
import { ownersOf } from '../byok/key-owner.ts'
import { type Model, type Route, type RouteId, routeId, stateKeyOf } from '../catalog/model.ts'
import type { Provider } from '../providers/provider.ts'
import type { RouterFields } from '../wire/chat/router-fields.ts'
import type { OrgRouting } from './org-routing.ts'
import type { Attempt } from './plan.ts'

/** A route that might serve the call, with its model. */
export interface Candidate {
  readonly model: Model
  readonly route: Route
}

const byModel = new WeakMap<Model, readonly Candidate[]>()

/** Returns every route of a model as candidates. The list is cached for each model object, which exists as long as its catalog snapshot. */
export function candidatesOf(model: Model): readonly Candidate[] {
  const known = byModel.get(model)
  if (known !== undefined) return known
  const made = model.routes.map(route => ({ model, route }))
  byModel.set(model, made)
  return made
}

/** Returns whether a route satisfies `india_only`. Only routes with proven residency in India do. */
export const meetsResidency = ({ route }: Candidate, fields: RouterFields): boolean => !fields.indiaOnly || route.residency === 'india'

/**
 * Returns whether `exclude` names the route. An entry names a provider, or a provider with one of its models. The model can be given by the
 * catalog's id on this route, or by the provider's own name of it. A route on an own key, whose id is `provider/` plus that name, can also
 * be given by the catalog's id of the same model.
 */
export function isExcluded({ route }: Candidate, { exclude }: RouterFields): boolean {
  if (exclude.length === 0) return false
  const { provider, upstreamModel } = route
  return exclude.some(name => name === provider.id || name === routeId(route) || name === `${provider.id}/${upstreamModel}` || name === catalogIdOf(route))
}

/** The state key of a route is its catalog id, unless several routes share one state. Returns null for a shared state. */
const catalogIdOf = (route: Route): RouteId | null => (stateKeyOf(route).endsWith('/*') ? null : stateKeyOf(route))

/** What decides which credentials may serve a candidate. */
export interface Credentials {
  readonly savedKeys: OrgRouting['savedKeys']
  /** True when a credential for native routes comes with the call. */
  readonly forwards: boolean
  /** True when the saved key may be tried after a forwarded credential. */
  readonly overflows: boolean
  /** Where the platform's own account may pay. When absent, it may pay everywhere. */
  readonly platform?: 'india' | 'none' | undefined
  /** Returns whether the platform's route is quarantined now. */
  inMaintenance(stateKey: RouteId): boolean
}

/**
 * Returns whether a forwarded credential may be sent to the route. It goes only to the native provider, and only for models that run on
 * callers' own credentials alone.
 */
const takesForwarded = ({ byokOnly, dialect, provider }: Route): boolean =>
  byokOnly && dialect === 'anthropic' && provider.dialect === 'anthropic' && provider.byok && !provider.userGiven

/**
 * Appends the allowed attempts on a candidate to `attempts`. The organisation's saved key comes before the platform's key when the
 * organisation wants that, and replaces it where the platform's key may not be used. A forwarded credential comes before a saved key. A
 * server of the organisation is called with its own key.
 */
export function addAttempts({ model, route }: Candidate, { savedKeys, forwards, overflows, platform, inMaintenance }: Credentials, attempts: Attempt[]): void {
  const { provider } = route
  if (provider.userGiven) {
    attempts.push({ model, route, credential: provider.platformKey, byok: true })
    return
  }
  const saved = provider.byok && savedKeys.size > 0 ? savedKeys.get(provider.id) : undefined
  if (forwards && takesForwarded(route)) {
    attempts.push({ model, route, credential: null, byok: true, forwarded: true })
    if (saved !== undefined && overflows) attempts.push({ model, route, credential: saved.key, byok: true, afterRateLimit: true })
    return
  }
  const isPaid = platform === undefined || (platform === 'india' && route.residency === 'india')
  const isPlatforms = provider.configured && !route.byokOnly && isPaid && !inMaintenance(stateKeyOf(route))
  if (saved !== undefined && (saved.alwaysUse || !isPlatforms)) attempts.push({ model, route, credential: saved.key, byok: true })
  if (isPlatforms) attempts.push({ model, route, credential: provider.platformKey, byok: false })
}

/**
 * Returns the candidates that may use a key from the request. If the request names a provider or server, that one gets the key. Otherwise
 * the key goes to the providers whose key format it matches; when these are not among the candidates, nobody gets it. A key without a known
 * format may go to every provider that takes callers' keys. The caller of this function then uses only the first provider, so that the key
 * never reaches a second one.
 */
export function withRequestKey(candidates: readonly Candidate[], key: Secret, named: boolean, providers: Iterable<Provider>): readonly Attempt[] {
  const takers = candidates.filter(({ route }) => route.provider.byok && (named || !route.provider.userGiven))
  const attempts = (chosen: readonly Candidate[]): readonly Attempt[] => chosen.map(({ model, route }) => ({ model, route, credential: key, byok: true }))
  if (named) return attempts(takers)
  const owners = ownersOf(key, providers)
  return attempts(owners.length === 0 ? takers : takers.filter(({ route }) => owners.includes(route.provider.id)))
}
