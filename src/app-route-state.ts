/** What is known of routes: circuits, averages, what is withheld; and how it is shared with other processes. */
import type { AppDeps } from './app-deps.ts'
import type { Domains } from './app-domains.ts'
import { findServerOwner } from './gateway/byok/custom-server-queries.ts'
import type { CatalogSnapshot } from './gateway/catalog/model.ts'
import { Circuits } from './gateway/routing/circuit.ts'
import { CircuitNews } from './gateway/routing/circuit-news.ts'
import { healEveryMs, RouteHealing } from './gateway/routing/healing.ts'
import { Maintenance } from './gateway/routing/maintenance.ts'
import { type DialObserver, dialObserver } from './gateway/routing/observe.ts'
import { Outages } from './gateway/routing/outages.ts'
import { RouteHealth } from './gateway/routing/route-health.ts'

export interface RouteState {
  readonly circuits: Circuits
  readonly health: RouteHealth
  readonly maintenance: Maintenance
  readonly observer: DialObserver
  /** Reads what is withheld and which circuits are open, and begins to look for routes that fail. */
  start(): Promise<void>
  stop(): Promise<void>
}

export function createRouteState(deps: AppDeps, { controlLog, jobs }: Domains, catalog: () => CatalogSnapshot): RouteState {
  const { config, clock, ids, log, db } = deps
  const health = new RouteHealth(clock)
  const circuits = new Circuits({
    clock,
    rule: { failuresToOpen: config.CIRCUIT_FAILURES, openMs: config.CIRCUIT_OPEN_MS },
    onChange(routeId, change, state) {
      if (change !== 'closed') opened(routeId)
      outages.tell(routeId, change, state)
      news?.tell(routeId, change)
    },
  })
  // One process has the embedded database, so nobody else is there to be told.
  const opened = (routeId: string): void => healing.opened(routeId)
  const news = db.kind === 'embedded' ? null : new CircuitNews(circuits, { clock, log, controlLog, processName: ids.requestId(), opened })
  const maintenance = new Maintenance({ db, clock, log, controlLog, health, catalog })
  const outages = new Outages({ db, clock, ids, log, circuits: () => circuits, catalog, findServerOwner: id => db.maybe(findServerOwner, id) })
  const healing = new RouteHealing({ clock, circuits, health, maintenance, catalog })
  return {
    circuits,
    health,
    maintenance,
    observer: dialObserver(circuits, health, healing),
    async start() {
      await maintenance.start()
      await outages.start()
      jobs.every('routing.heal', healEveryMs, () => healing.run())
    },
    async stop() {
      news?.stop()
      await outages.stop()
    },
  }
}
