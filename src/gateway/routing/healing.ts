/** Finds routes of the platform that fail again and again, and has them withheld for a while. It sends nothing to anybody. */
import { LRUCache } from 'lru-cache'
import type { Clock } from '../../platform/clock.ts'
import { type CatalogSnapshot, type Model, type Route, type RouteId, routeId } from '../catalog/model.ts'
import type { Circuits } from './circuit.ts'
import type { Maintenance } from './maintenance.ts'
import type { RouteHealth } from './route-health.ts'

/** How often it looks. */
export const healEveryMs = 5_000
/** So many openings of a circuit within the window, or so many refusals of the platform's key in a row, and the route is withheld. Ours. */
const openingsMin = 3
const refusalsMin = 3
const windowMs = 10 * 60_000
/** Routes that are watched at once. */
const watchedMax = 5_000

interface Signs {
  /** Instants at which the circuit opened or opened again. */
  readonly openedAtMs: readonly number[]
  /** Refusals of the platform's key without a success between them. */
  readonly refusals: number
}

export interface HealingDeps {
  readonly clock: Clock
  readonly circuits: Pick<Circuits, 'available'>
  readonly health: Pick<RouteHealth, 'inMaintenance'>
  readonly maintenance: Pick<Maintenance, 'withholdFailing' | 'sweep'>
  catalog(): CatalogSnapshot
}

const nothing: Signs = { openedAtMs: [], refusals: 0 }

/** Counts in memory what dials of this process come to; `run` draws the conclusions. */
export class RouteHealing {
  readonly #deps: HealingDeps
  readonly #signs = new LRUCache<RouteId, Signs>({ max: watchedMax })

  constructor(deps: HealingDeps) {
    this.#deps = deps
  }

  /** Its circuit has opened, for the first time or again. */
  opened(route: RouteId): void {
    const signs = this.#signs.get(route) ?? nothing
    const nowMs = this.#deps.clock.nowMs()
    this.#signs.set(route, { ...signs, openedAtMs: [...signs.openedAtMs.filter(atMs => nowMs - atMs < windowMs), nowMs].slice(-openingsMin) })
  }

  /** The provider refused the platform's key, or refused it on billing grounds. */
  refused(route: RouteId): void {
    const signs = this.#signs.get(route) ?? nothing
    this.#signs.set(route, { ...signs, refusals: signs.refusals + 1 })
  }

  /** It has served: refusals before it were no end of it. */
  served(route: RouteId): void {
    const signs = this.#signs.size === 0 ? undefined : this.#signs.get(route)
    if (signs !== undefined && signs.refusals > 0) this.#signs.set(route, { ...signs, refusals: 0 })
  }

  /** Withholds what has shown signs enough, unless it is the last route of its model that the platform can serve: a failure says more than no route. */
  async run(): Promise<void> {
    const { maintenance } = this.#deps
    for (const route of [...this.#signs.keys()]) {
      const reason = this.#judge(route)
      if (reason === null || !this.#hasOthers(route)) continue
      this.#signs.delete(route)
      await maintenance.withholdFailing(route, reason)
    }
    await maintenance.sweep()
  }

  #judge(route: RouteId): string | null {
    const { openedAtMs, refusals } = this.#signs.get(route) ?? nothing
    const nowMs = this.#deps.clock.nowMs()
    if (refusals >= refusalsMin) return "the provider refuses the platform's key"
    if (openedAtMs.filter(atMs => nowMs - atMs < windowMs).length >= openingsMin) return 'its circuit keeps opening'
    return null
  }

  /** Whether the platform would still serve the model without it. A route that is not of the catalog is not the platform's to withhold. */
  #hasOthers(id: RouteId): boolean {
    const model = [...this.#deps.catalog().models.values()].find(entry => entry.kind !== 'virtual' && entry.routes.some(route => routeId(route) === id))
    return model !== undefined && this.#isServed(model.routes.find(route => routeId(route) === id)) && this.#othersServe(model, id)
  }

  #othersServe(model: Model, id: RouteId): boolean {
    const { circuits, health } = this.#deps
    return model.routes.some(route => {
      const other = routeId(route)
      return other !== id && this.#isServed(route) && circuits.available(other) && !health.inMaintenance(other)
    })
  }

  #isServed(route: Route | undefined): boolean {
    return route?.provider.configured === true && !route.byokOnly
  }
}
