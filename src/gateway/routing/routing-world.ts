import type { Clock } from '../../platform/clock.ts'
import { type CatalogSnapshot, type Route, stateKeyOf } from '../catalog/model.ts'
import type { Circuits } from './circuits/circuit.ts'
import type { HealthView } from './circuits/route-health.ts'
import type { RouteFacts } from './selection/rank.ts'

/** What resolving looks at. It dials nothing and changes nothing but the count of rankings that makes probes due. */
export interface RoutingWorld {
  readonly catalog: CatalogSnapshot
  readonly circuits: Pick<Circuits, 'isOpen'>
  /** As the organisation of the call sees it. */
  readonly health: HealthView
  readonly clock: Clock
}

/** What is known of a route now. */
export function factsOf(route: Route, { circuits, health, clock }: RoutingWorld): RouteFacts {
  const key = stateKeyOf(route)
  return { ...health.measurements(key), open: circuits.isOpen(key, clock.nowMs()) }
}
