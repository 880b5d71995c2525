import type { Clock } from '../../platform/clock.ts'
import { type CatalogSnapshot, type Route, stateKeyOf } from '../catalog/model.ts'
import type { Circuits } from './circuits/circuit.ts'
import type { HealthView } from './circuits/route-health.ts'
import type { RouteFacts } from './selection/rank.ts'

/**
 * The state that resolving reads. Resolving contacts no provider. It changes one thing: the count of rankings that decides when an unmeasured route
 * comes first.
 */
export interface RoutingWorld {
  readonly catalog: CatalogSnapshot
  readonly circuits: Pick<Circuits, 'isOpen'>
  /** The measurements as the calling organisation sees them. */
  readonly health: HealthView
  readonly clock: Clock
}

/** Returns what is known about a route now. */
export function factsOf(route: Route, { circuits, health, clock }: RoutingWorld): RouteFacts {
  const key = stateKeyOf(route)
  return { ...health.measurements(key), open: circuits.isOpen(key, clock.nowMs()) }
}
