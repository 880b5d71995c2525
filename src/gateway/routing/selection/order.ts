import { Secret } from '../../../platform/security/secret.ts'
import { routeId } from '../../catalog/model.ts'
import { addAttempts, type Candidate, type Credentials, withRequestKey } from '../candidates.ts'
import type { Attempt, ResolveRequest } from '../plan.ts'
import { factsOf, type RoutingWorld } from '../routing-world.ts'
import { type Preference, rank } from './rank.ts'

/** Returns the allowed attempts on the candidates, each with its credential. */
export function reachable(candidates: readonly Candidate[], request: ResolveRequest, world: RoutingWorld): readonly Attempt[] {
  const { upstreamKey, provider } = request.fields
  if (upstreamKey !== null) {
    const { catalog } = world
    // An id that contains a provider says whose key the request contains. A pinned provider says so too.
    const named = provider !== null || (candidates[0]?.model.id === request.modelId && !catalog.models.has(request.modelId))
    return withRequestKey(candidates, new Secret(upstreamKey), named, catalog.providers.values())
  }
  const credentials: Credentials = {
    savedKeys: request.org.savedKeys,
    forwards: request.forwards === true,
    overflows: request.overflows === true,
    platform: request.platform,
    indiaOnly: request.fields.indiaOnly,
    inMaintenance: id => world.health.inMaintenance(id),
  }
  const attempts: Attempt[] = []
  for (const candidate of candidates) addAttempts(candidate, credentials, attempts)
  return attempts
}

/**
 * Orders the attempts in four groups: a forwarded credential, saved keys that are always used, the platform's routes, and other saved keys. Within
 * each group, open circuits come last and the preference decides the rest.
 */
export function inOrder(attempts: readonly Attempt[], request: ResolveRequest, preference: Preference, world: RoutingWorld): readonly Attempt[] {
  if (attempts.length < 2) return attempts
  if (!attempts.some(attempt => attempt.byok)) return ranked(attempts, preference, world)
  const { org, fields } = request
  const group = ({ byok, route, forwarded }: Attempt): number => {
    if (forwarded) return 0
    if (!byok) return 2
    return fields.upstreamKey === null && org.savedKeys.get(route.provider.id)?.alwaysUse ? 1 : 3
  }
  return [0, 1, 2, 3].flatMap(wanted =>
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

/** Keeps the first attempt for each route and kind of credential. A forwarded credential goes to one provider only. */
export function unique(attempts: readonly Attempt[]): readonly Attempt[] {
  if (attempts.length < 2) return attempts
  const seen = new Set<string>()
  const forwardedTo = attempts.find(attempt => attempt.forwarded)?.route.provider.id
  return attempts.filter(({ route, byok, forwarded }) => {
    if (forwarded && route.provider.id !== forwardedTo) return false
    const key = `${forwarded ? 'forwarded' : byok ? 'own' : 'platform'} ${routeId(route)}`
    return !seen.has(key) && seen.add(key)
  })
}
