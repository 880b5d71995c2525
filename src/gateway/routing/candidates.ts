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

/** Every route of a model. Made once a model: a catalog entry lives as long as its snapshot. */
export function candidatesOf(model: Model): readonly Candidate[] {
  const known = byModel.get(model)
  if (known !== undefined) return known
  const made = model.routes.map(route => ({ model, route }))
  byModel.set(model, made)
  return made
}

/** Only proven India-resident routes pass `india_only`. */
export const meetsResidency = ({ route }: Candidate, fields: RouterFields): boolean => !fields.indiaOnly || route.residency === 'india'

/**
 * `exclude` names a provider, or a provider for one model. The model may be named as this route lists it, as the provider calls it (the id of
 * a model on an own key is `provider/` and that name), or as the catalog calls the model that runs here on an own key.
 */
export function isExcluded({ route }: Candidate, { exclude }: RouterFields): boolean {
  if (exclude.length === 0) return false
  const { provider, upstreamModel } = route
  return exclude.some(name => name === provider.id || name === routeId(route) || name === `${provider.id}/${upstreamModel}` || name === catalogIdOf(route))
}

/** The state key of a route is its id in the catalog, but where routes share one. */
const catalogIdOf = (route: Route): RouteId | null => (stateKeyOf(route).endsWith('/*') ? null : stateKeyOf(route))

/** What decides whose credential may serve a candidate. */
export interface Credentials {
  readonly savedKeys: OrgRouting['savedKeys']
  /** A credential for native routes comes with the call. */
  readonly forwards: boolean
  /** Behind it the saved key may be tried. */
  readonly overflows: boolean
  /** Where the platform's own account may pay; left out: everywhere. */
  readonly platform?: 'india' | 'none' | undefined
  /** Whether the platform's route is withheld for the time being. */
  inMaintenance(stateKey: RouteId): boolean
}

/** A credential of the caller goes to the native provider of models that nobody else's key serves, and nowhere else. */
const takesForwarded = ({ byokOnly, dialect, provider }: Route): boolean =>
  byokOnly && dialect === 'anthropic' && provider.dialect === 'anthropic' && provider.byok && !provider.userGiven

/**
 * Adds the attempts that may be made on a candidate. The platform's key serves where it may; the organisation's saved one where the
 * platform's may not, or ahead of it when the organisation wants that. A credential that comes with the call goes before a saved key. A
 * server of the organisation is dialed with the key that it has.
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
 * The candidates that a key sent with the request may serve. A provider or server that the request names gets it. Otherwise it goes to the
 * providers whose key shape it has; a key that looks like one of a provider outside the candidates goes to nobody; any other key may go
 * to each that takes callers' keys, and the caller of this function keeps to the first of them: one provider, never a second.
 */
export function withRequestKey(candidates: readonly Candidate[], key: Secret, named: boolean, providers: Iterable<Provider>): readonly Attempt[] {
  const takers = candidates.filter(({ route }) => route.provider.byok && (named || !route.provider.userGiven))
  const attempts = (chosen: readonly Candidate[]): readonly Attempt[] => chosen.map(({ model, route }) => ({ model, route, credential: key, byok: true }))
  if (named) return attempts(takers)
  const owners = ownersOf(key, providers)
  return attempts(owners.length === 0 ? takers : takers.filter(({ route }) => owners.includes(route.provider.id)))
}
