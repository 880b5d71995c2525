import { Secret } from '../../platform/secret.ts'
import { type CatalogSnapshot, routeId } from '../catalog/model.ts'
import { addAttempts, type Candidate, type Credentials, withRequestKey } from './candidates.ts'
import type { Attempt, ResolveRequest } from './plan.ts'
import { type Preference, rank } from './rank.ts'
import { factsOf, type RoutingWorld } from './routing-world.ts'

/** The attempts that may be made on candidates, with the credential of each. */
export function reachable(candidates: readonly Candidate[], request: ResolveRequest, world: RoutingWorld): readonly Attempt[] {
  const { upstreamKey, provider } = request.fields
  if (upstreamKey !== null) {
    const { catalog } = world
    // An id with a provider in it says whose key it is, as a pin does.
    const named = provider !== null || (candidates[0]?.model.id === request.modelId && !catalog.models.has(request.modelId))
    return withRequestKey(candidates, new Secret(upstreamKey), named, keyShapes(catalog))
  }
  const credentials: Credentials = { savedKeys: request.org.savedKeys, inMaintenance: id => world.health.inMaintenance(id) }
  const attempts: Attempt[] = []
  for (const candidate of candidates) addAttempts(candidate, credentials, attempts)
  return attempts
}

const keyShapes = (catalog: CatalogSnapshot): ReadonlyMap<string, string> =>
  new Map([...catalog.providers.values()].flatMap(({ id, keyShape }) => (keyShape === null ? [] : [[id, keyShape] as const])))

/**
 * Saved keys that are always to be used come first, then the platform's routes, then those on a saved key; within each the wish of
 * the caller decides, open circuits last.
 */
export function inOrder(attempts: readonly Attempt[], request: ResolveRequest, preference: Preference, world: RoutingWorld): readonly Attempt[] {
  if (attempts.length < 2) return attempts
  if (!attempts.some(attempt => attempt.byok)) return ranked(attempts, preference, world)
  const { org, fields } = request
  const group = ({ byok, route }: Attempt): number => {
    if (!byok) return 1
    return fields.upstreamKey === null && org.savedKeys.get(route.provider.id)?.alwaysUse ? 0 : 2
  }
  return [0, 1, 2].flatMap(wanted =>
    ranked(
      attempts.filter(attempt => group(attempt) === wanted),
      preference,
      world,
    ),
  )
}

function ranked(attempts: readonly Attempt[], preference: Preference, world: RoutingWorld): readonly Attempt[] {
  if (attempts.length < 2) return attempts
  const byRoute = new Map(attempts.map(attempt => [attempt.route, attempt]))
  return rank([...byRoute.keys()], route => factsOf(route, world), preference).flatMap(route => byRoute.get(route) ?? [])
}

/** Each route once with each kind of credential, at its first place. */
export function unique(attempts: readonly Attempt[]): readonly Attempt[] {
  if (attempts.length < 2) return attempts
  const seen = new Set<string>()
  return attempts.filter(({ route, byok }) => {
    const key = `${byok ? 'own' : 'platform'} ${routeId(route)}`
    return !seen.has(key) && seen.add(key)
  })
}
