import { stateKeyOf } from '../../catalog/model.ts'
import type { Attempt } from '../plan.ts'
import type { RouteQuarantine } from './quarantine.ts'
import type { RouteCircuits } from './route-circuits.ts'
import type { RouteHealth } from './route-health.ts'

/** What was dialed, and whether on the caller's own key. */
export type Dialed = Pick<Attempt, 'route' | 'byok'>

/** What dials report. A client error and a call that the client abandoned are not reported: they say nothing about the route. */
export interface DialObserver {
  succeeded(dialed: Dialed, orgId: number, firstByteMs: number, headers: Readonly<Record<string, string | string[] | undefined>>): void
  failed(dialed: Dialed, orgId: number): void
  rateLimited(dialed: Dialed, orgId: number): void
  /** A dial is about to begin. False: another call probes the route right now, so dial something else first. */
  begins(dialed: Dialed, orgId: number): boolean
  /** The dial ended without a word on the route: a client error, an abandoned call. */
  undecided(dialed: Dialed, orgId: number): void
  /** The platform's own key was refused, or refused on billing grounds. */
  refused(dialed: Dialed, orgId: number): void
  /** A reply called tools; sound: the arguments of all of them are JSON. */
  calledTools(dialed: Dialed, orgId: number, sound: boolean): void
}

/** What of circuits a dial is told to. */
export type ObservedCircuits = Pick<RouteCircuits, 'begins' | 'undecided' | 'success' | 'failure' | 'rateLimited'>

/** Whether a dial says something of a route that the platform serves: an own key may be limited, refused or abused by its owner alone. */
const isOfTheRoute = ({ route, byok }: Dialed): boolean => !byok || route.byokOnly || route.provider.userGiven === true || !route.provider.configured

/** Feeds circuits, averages and the healing with the outcome of every dial. */
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
