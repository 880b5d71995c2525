import type { RouteId } from '../catalog/model.ts'
import type { Circuits } from './circuit.ts'
import type { RouteHealth } from './route-health.ts'

/** What dials report. A client error and a call that the client abandoned are not reported: they say nothing about the route. */
export interface DialObserver {
  succeeded(routeId: RouteId, firstByteMs: number, headers: Readonly<Record<string, string | string[] | undefined>>): void
  failed(routeId: RouteId): void
  rateLimited(routeId: RouteId): void
}

/** Feeds circuits and averages with the outcome of every dial. */
export function dialObserver(circuits: Circuits, health: RouteHealth): DialObserver {
  return {
    succeeded(routeId, firstByteMs, headers) {
      circuits.success(routeId)
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
    },
  }
}
