import { stateKeyOf } from '../../catalog/model.ts'
import type { Attempt } from '../plan.ts'
import type { RouteQuarantine } from './quarantine.ts'
import type { RouteCircuits } from './route-circuits.ts'
import type { RouteHealth } from './route-health.ts'

/** The dialed route, and whether the dial used the caller's own key. */
export type Dialed = Pick<Attempt, 'route' | 'byok'>

/**
 * Receives the results of dials. Client errors, and calls that the client abandoned, are reported as `undecided`, because they say nothing about the
 * route.
 */
export interface DialObserver {
  succeeded(dialed: Dialed, orgId: number, firstByteMs: number, headers: Readonly<Record<string, string | string[] | undefined>>): void
  failed(dialed: Dialed, orgId: number): void
  rateLimited(dialed: Dialed, orgId: number): void
  /** Is called before a dial. Returns false while another call probes the route. The caller then tries another route first. */
  begins(dialed: Dialed, orgId: number): boolean
  /** The dial ended without information about the route: a client error or an abandoned call. */
  undecided(dialed: Dialed, orgId: number): void
  /** Is called when the provider refused the platform's own key, for billing reasons or others. */
  refused(dialed: Dialed, orgId: number): void
  /** A reply called tools. `sound` is true when all arguments are valid JSON. */
  calledTools(dialed: Dialed, orgId: number, sound: boolean): void
}

/** The functions of the circuits to which dials are reported. */
export type ObservedCircuits = Pick<RouteCircuits, 'begins' | 'undecided' | 'success' | 'failure' | 'rateLimited'>

/**
 * Returns whether a dial says something about the route as the platform serves it. The owner of an own key may have caused its limits and refusals.
 * For a provider with a platform key, dials on own keys therefore do not count. The place of an organisation at a cloud has limits and a speed of its
 * own, and its state has the key of the operator's route, so dials of it never count.
 */
function isOfTheRoute({ route, byok }: Dialed): boolean {
  const { provider } = route
  if (byok && provider.isOrgPlace === true) return false
  return !byok || (route.byokOnly && route.isOwnId !== true) || provider.userGiven === true || !provider.configured
}

/** Returns an observer that reports each dial to the circuits, the averages and the quarantine. */
export function dialObserver(circuits: ObservedCircuits, health: RouteHealth, quarantine: Pick<RouteQuarantine, 'refused' | 'served'>): DialObserver {
  return {
    begins: ({ route, byok }, orgId) => circuits.begins(stateKeyOf(route), orgId, byok),
    undecided: ({ route, byok }, orgId) => circuits.undecided(stateKeyOf(route), orgId, byok),
    refused: ({ route }, orgId) => quarantine.refused(stateKeyOf(route), orgId),
    calledTools(dialed, orgId, sound) {
      if (isOfTheRoute(dialed)) health.recordToolCalls(stateKeyOf(dialed.route), orgId, sound)
    },
    succeeded(dialed, orgId, firstByteMs, headers) {
      const { route, byok } = dialed
      const routeId = stateKeyOf(route)
      circuits.success(routeId, orgId, byok)
      if (!byok) quarantine.served(routeId)
      if (!isOfTheRoute(dialed)) return
      health.record({ routeId, orgId, latencyMs: firstByteMs, ok: true })
      health.noteHeaders(routeId, orgId, headers)
    },
    failed(dialed, orgId) {
      const routeId = stateKeyOf(dialed.route)
      circuits.failure(routeId, orgId, dialed.byok)
      if (isOfTheRoute(dialed)) health.record({ routeId, orgId, latencyMs: 0, ok: false })
    },
    rateLimited(dialed, orgId) {
      const routeId = stateKeyOf(dialed.route)
      circuits.rateLimited(routeId, orgId, dialed.byok)
      if (!isOfTheRoute(dialed)) return
      health.record({ routeId, orgId, latencyMs: 0, ok: false })
      health.noteLimited(routeId, orgId)
    },
  }
}
