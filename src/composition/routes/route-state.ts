/** Constructs the state of routes and shares it with other processes. The state consists of circuits, averages and quarantined routes. */

import { serverOwner } from '../../gateway/byok/custom-servers/custom-servers.ts'
import type { CatalogSnapshot } from '../../gateway/catalog/model.ts'
import { Circuits } from '../../gateway/routing/circuits/circuit.ts'
import { CircuitNews } from '../../gateway/routing/circuits/circuit-news.ts'
import { type DialObserver, dialObserver } from '../../gateway/routing/circuits/observe.ts'
import { healEveryMs, RouteQuarantine } from '../../gateway/routing/circuits/quarantine.ts'
import { RouteCircuits } from '../../gateway/routing/circuits/route-circuits.ts'
import { RouteHealth } from '../../gateway/routing/circuits/route-health.ts'
import { Maintenance } from '../../gateway/routing/outages/maintenance.ts'
import { Outages } from '../../gateway/routing/outages/outages.ts'
import type { AppDeps } from '../deps.ts'
import type { Domains } from '../domains.ts'

export interface RouteState {
  readonly circuits: RouteCircuits
  readonly health: RouteHealth
  readonly maintenance: Maintenance
  readonly observer: DialObserver
  /** Reads the quarantined routes and the open circuits, and begins to watch for failing routes. */
  start(): Promise<void>
  stop(): Promise<void>
}

/** Constructs the state of routes. It reads nothing before `start`. */
export function createRouteState(deps: AppDeps, { controlLog, jobs, founders }: Domains, catalog: () => CatalogSnapshot): RouteState {
  const { config, clock, ids, log, db } = deps
  const health = new RouteHealth(clock, founders.known)
  const kept = new Circuits({
    clock,
    rule: { failuresToOpen: config.CIRCUIT_FAILURES, openMs: config.CIRCUIT_OPEN_MS },
    onChange(routeId, change, state) {
      if (change !== 'closed') opened(routeId)
      outages.notify(routeId, change, state)
      news?.notify(routeId, change)
    },
  })
  const founderOf = (orgId: number) => founders.of(orgId)
  const circuits = new RouteCircuits(kept, { failuresToOpen: config.CIRCUIT_FAILURES, founderOf })
  // Organisations are never deleted, so once there are several, there are always several.
  let isOne = true
  const hasOneFounder = async (): Promise<boolean> => {
    if (!isOne) return false
    const counted = await founders.count()
    if (counted.organisations > 1) circuits.hasSeveralOrganisations()
    isOne = counted.founders < 2
    return isOne
  }
  // An installation with the embedded database has only one process, so there is no other process to notify.
  const opened = (routeId: string): void => quarantine.opened(routeId)
  const news = db.kind === 'embedded' ? null : new CircuitNews(circuits, { clock, log, controlLog, processName: ids.requestId(), opened })
  const maintenance = new Maintenance({ db, clock, log, controlLog, health, catalog })
  const outages = new Outages({ db, clock, ids, log, circuits: () => circuits, catalog, findServerOwner: id => serverOwner(db, id) })
  const quarantine = new RouteQuarantine({ clock, circuits, health, maintenance, catalog, hasOneFounder, founderOf })
  return {
    circuits,
    health,
    maintenance,
    observer: dialObserver(circuits, health, quarantine),
    async start() {
      await hasOneFounder()
      await maintenance.start()
      await outages.start()
      jobs.every('routing.heal', healEveryMs, () => quarantine.run())
    },
    async stop() {
      news?.stop()
      await outages.stop()
    },
  }
}
