/** What the service files of the composition root (app-*.ts) work with. */
import type { AppDeps } from './app-deps.ts'
import type { Domains } from './app-domains.ts'
import type { ServiceWatch } from './app-watch.ts'
import type { Catalog } from './gateway/catalog/catalog.ts'
import type { Circuits } from './gateway/routing/circuit.ts'
import type { DialObserver } from './gateway/routing/observe.ts'
import type { RouteHealth } from './gateway/routing/route-health.ts'

export interface AppParts extends AppDeps, Omit<Domains, 'stop'> {
  readonly catalog: Catalog
  readonly circuits: Circuits
  readonly health: RouteHealth
  readonly routeObserver: DialObserver
  readonly baseUrl: () => string
  readonly watch: ServiceWatch
}
