/** The parts that the service files of the composition root use. */

import type { Catalog } from '../gateway/catalog/catalog.ts'
import type { Identities } from '../gateway/cloud/identities.ts'
import type { DialObserver } from '../gateway/routing/circuits/observe.ts'
import type { RouteCircuits } from '../gateway/routing/circuits/route-circuits.ts'
import type { RouteHealth } from '../gateway/routing/circuits/route-health.ts'
import type { AppDeps } from './deps.ts'
import type { Domains } from './domains.ts'
import type { ServiceWatch } from './telemetry/telemetry-start.ts'

export interface AppParts extends AppDeps, Omit<Domains, 'stop'> {
  readonly catalog: Catalog
  readonly circuits: RouteCircuits
  readonly health: RouteHealth
  readonly routeObserver: DialObserver
  readonly baseUrl: () => string
  readonly watch: ServiceWatch
  readonly identities: Identities
}
