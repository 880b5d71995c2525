import type { RouteId } from '../catalog/model.ts'
import type { Circuits } from './circuit.ts'
import type { RouteHealing } from './healing.ts'
import type { RouteHealth } from './route-health.ts'

/** What dials report. A client error and a call that the client abandoned are not reported: they say nothing about the route. */
export interface DialObserver {
  succeeded(routeId: RouteId, firstByteMs: number, headers: Readonly<Record<string, string | string[] | undefined>>): void
  failed(routeId: RouteId): void
  rateLimited(routeId: RouteId): void
  /** A dial is about to begin. False: another call probes the route right now, so dial something else first. */
  begins(routeId: RouteId): boolean
  /** The dial ended without a word on the route: a client error, an abandoned call. */
  undecided(routeId: RouteId): void
  /** The platform's own key was refused, or refused on billing grounds. */
  refused(routeId: RouteId): void
  /** A reply called tools; sound: the arguments of all of them are JSON. */
  calledTools(routeId: RouteId, sound: boolean): void
}

/** Feeds circuits, averages and the healing with the outcome of every dial. */
export function dialObserver(circuits: Circuits, health: RouteHealth, healing: Pick<RouteHealing, 'refused' | 'served'>): DialObserver {
  return {
    begins: routeId => circuits.begins(routeId),
    undecided: routeId => circuits.undecided(routeId),
    refused: routeId => healing.refused(routeId),
    calledTools: (routeId, sound) => health.recordToolCalls(routeId, sound),
    succeeded(routeId, firstByteMs, headers) {
      circuits.success(routeId)
      healing.served(routeId)
      health.record({ routeId, latencyMs: firstByteMs, ok: true })
      health.noteHeaders(routeId, headers)
    },
    failed(routeId) {
      circuits.failure(routeId)
      health.record({ routeId, latencyMs: 0, ok: false })
    },
    rateLimited(routeId) {
      circuits.rateLimited(routeId)
      health.record({ routeId, latencyMs: 0, ok: false })
      health.noteLimited(routeId)
    },
  }
}
