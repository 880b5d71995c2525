import type { Secret } from '../../platform/security/secret.ts'
import { ownersOf } from '../byok/key-owner.ts'
import type { SavedKey } from '../byok/org-credentials.ts'
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

/** Returns every route of a model as candidates. The list is cached for each model object. The object exists as long as its catalog snapshot. */
export function candidatesOf(model: Model): readonly Candidate[] {
  const known = byModel.get(model)
  if (known !== undefined) return known
  const made = model.routes.map(route => ({ model, route }))
  byModel.set(model, made)
  return made
}

/** Returns whether the route satisfies `india_only`. A route does so only when its residency in India is proven. */
export const meetsResidency = ({ route }: Candidate, fields: RouterFields): boolean => !fields.indiaOnly || route.residency === 'india'

/**
 * Returns whether `exclude` names the route. An entry names a provider, or a provider with one of its models. The model may be named by its catalog
 * id on this route, or by the provider's own name for it. A route on an own key has an id of the form `provider/name`. Its model may also be named by
 * the catalog id of the same model.
 */
export function isExcluded({ route }: Candidate, { exclude }: RouterFields): boolean {
  if (exclude.length === 0) return false
  const { provider, upstreamModel } = route
  return exclude.some(name => name === provider.id || name === routeId(route) || name === `${provider.id}/${upstreamModel}` || name === catalogIdOf(route))
}

/** Returns the catalog id of a route: its state key, unless several routes share one state. Returns null for a shared state. */
const catalogIdOf = (route: Route): RouteId | null => (stateKeyOf(route).endsWith('/*') ? null : stateKeyOf(route))

/** The facts that decide which credentials may serve a candidate. */
export interface Credentials {
  readonly savedKeys: OrgRouting['savedKeys']
  /** True when the call contains a credential that the gateway may forward to native routes. */
  readonly forwards: boolean
  /** True when the saved key may be tried after a forwarded credential. */
  readonly overflows: boolean
  /** The places where the platform's own account may pay. When it is left out, it may pay everywhere. */
  readonly platform?: 'india' | 'none' | undefined
  /** True when only routes in India may serve the call. The place of an organisation at a cloud proves no residency, so it serves no such call. */
  readonly indiaOnly?: boolean
  /** Returns whether the platform's route is quarantined now. */
  inMaintenance(stateKey: RouteId): boolean
}

/**
 * Returns whether a forwarded credential may be sent to the route. It may be sent only to the native provider, and only for models that need the
 * caller's own credential. A cloud that serves the same models is another provider, and must not see the credential.
 */
const takesForwarded = ({ byokOnly, dialect, provider }: Route): boolean =>
  byokOnly &&
  dialect === 'anthropic' &&
  provider.dialect === 'anthropic' &&
  provider.byok &&
  !provider.userGiven &&
  provider.cloud === undefined &&
  provider.address === undefined

/**
 * Appends the allowed attempts on a candidate to `attempts`. A server of the organisation is called with its own key. A forwarded credential comes
 * before a saved key. The saved key of the organisation comes before the platform's key if the organisation chose that. Where the platform's key may
 * not be used, only the saved key is tried.
 */
export function addAttempts({ model, route }: Candidate, credentials: Credentials, attempts: Attempt[]): void {
  const { savedKeys, forwards, overflows, platform, inMaintenance } = credentials
  const { provider } = route
  if (provider.userGiven) {
    attempts.push({ model, route, credential: provider.platformKey, byok: true })
    return
  }
  const saved = provider.byok && savedKeys.size > 0 ? usableKey(savedKeys.get(provider.id), provider, credentials) : undefined
  if (forwards && takesForwarded(route)) {
    attempts.push({ model, route, credential: null, byok: true, forwarded: true })
    if (saved !== undefined && overflows) attempts.push({ model, route, credential: saved.key, byok: true, afterRateLimit: true })
    return
  }
  const isPaid = platform === undefined || (platform === 'india' && route.residency === 'india')
  const isPlatforms = provider.configured && !route.byokOnly && isPaid && !inMaintenance(stateKeyOf(route))
  if (saved !== undefined && (saved.alwaysUse || !isPlatforms)) attempts.push(onSavedKey(model, route, saved))
  if (isPlatforms) attempts.push(onPlatform(model, route))
}

/** Returns the saved key, unless there is no address to call, or its place is not proven to be where the call must stay. */
function usableKey(saved: SavedKey | undefined, provider: Provider, { indiaOnly }: Credentials): SavedKey | undefined {
  if (saved === undefined || (saved.provider ?? provider).baseUrl === '') return undefined
  return indiaOnly === true && saved.provider !== undefined ? undefined : saved
}

/** Returns the attempt on the platform's account. The identity of this process is used only where no key is set. */
export function onPlatform(model: Model, route: Route): Attempt {
  const { platformKey: credential, usesIdentity } = route.provider
  if (credential === null && usesIdentity === true) return { model, route, credential, byok: false, identity: 'process' }
  return { model, route, credential, byok: false }
}

/** Returns the attempt on the saved key or the saved credentials of the organisation, at the place that the organisation chose. */
function onSavedKey(model: Model, given: Route, saved: SavedKey): Attempt {
  const route = saved.provider === undefined ? given : routeAt(given, saved.provider)
  if (saved.credentials !== undefined) return { model, route, credential: null, byok: true, identity: saved.credentials }
  return { model, route, credential: saved.key, byok: true }
}

/** The routes at the places of organisations. They are kept, because other parts cache by route. */
const placedRoutes = new WeakMap<Provider, WeakMap<Route, Route>>()

/** Returns the route at the place of an organisation. */
function routeAt(route: Route, provider: Provider): Route {
  let routes = placedRoutes.get(provider)
  if (routes === undefined) {
    routes = new WeakMap()
    placedRoutes.set(provider, routes)
  }
  const known = routes.get(route)
  if (known !== undefined) return known
  const made: Route = { ...route, provider, residency: provider.residency }
  routes.set(route, made)
  return made
}

/**
 * Returns the attempts that may use a key from the request. If the request names a provider or server, only that one gets the key. Otherwise the key
 * goes to the providers whose key format it matches. If none of them is among the candidates, the key is not used. A key of unknown format may go to
 * every provider that accepts callers' keys. The caller of this function keeps only the first provider, so the key never reaches a second one.
 */
export function withRequestKey(candidates: readonly Candidate[], key: Secret, named: boolean, providers: Iterable<Provider>): readonly Attempt[] {
  const takers = candidates
    .filter(({ route: { provider } }) => provider.byok && provider.baseUrl !== '' && provider.auth !== 'identity')
    .filter(({ route }) => named || !route.provider.userGiven)
  const attempts = (chosen: readonly Candidate[]): readonly Attempt[] => chosen.map(({ model, route }) => ({ model, route, credential: key, byok: true }))
  if (named) return attempts(takers)
  const owners = ownersOf(key, providers)
  return attempts(owners.length === 0 ? takers : takers.filter(({ route }) => owners.includes(route.provider.id)))
}
