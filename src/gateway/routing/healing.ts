/** Finds routes of the platform that fail again and again, and has them withheld for a while. It sends nothing to anybody. */
import { LRUCache } from 'lru-cache'
import type { Clock } from '../../platform/clock.ts'
import { type CatalogSnapshot, type Route, type RouteId, routeId } from '../catalog/model.ts'
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
  readonly maintenance: Pick<Maintenance, 'withholdFailing' | 'tidy'>
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

  /** Withholds what has shown signs enough, unless it is the last route of its model that the platform can serve, at all or in India: a failure says more than no route. */
  async run(): Promise<void> {
    const { maintenance } = this.#deps
    for (const route of [...this.#signs.keys()]) {
      const reason = this.#judge(route)
      const others = reason === null ? [] : this.#othersThatServe(route)
      if (reason === null || others.length === 0) continue
      await maintenance.withholdFailing(route, reason, others)
      // Only now: what could not be written is written at the next look.
      this.#signs.delete(route)
    }
    await maintenance.tidy()
  }

  #judge(route: RouteId): string | null {
    const { openedAtMs, refusals } = this.#signs.get(route) ?? nothing
    const nowMs = this.#deps.clock.nowMs()
    if (refusals >= refusalsMin) return "the provider refuses the platform's key"
    if (openedAtMs.filter(atMs => nowMs - atMs < windowMs).length >= openingsMin) return 'its circuit keeps opening'
    return null
  }

  /**
   * The routes of its model that the platform would serve in its place; for a route in India those in India, as callers who may go nowhere
   * else would be left without any. None for a route that is not of the catalog: it is not the platform's to withhold.
   */
  #othersThatServe(id: RouteId): readonly RouteId[] {
    const { catalog, circuits, health } = this.#deps
    const model = [...catalog().models.values()].find(entry => entry.kind !== 'virtual' && entry.routes.some(route => routeId(route) === id))
    const sick = model?.routes.find(route => routeId(route) === id)
    if (model === undefined || !this.#isServed(sick)) return []
    const others = model.routes.filter(route => this.#isServed(route) && (sick?.residency !== 'india' || route.residency === 'india')).map(routeId)
    return others.filter(other => other !== id && circuits.available(other) && !health.inMaintenance(other))
  }

  #isServed(route: Route | undefined): boolean {
    return route?.provider.configured === true && !route.byokOnly
  }
}
