/** Finds routes of the platform that fail again and again, and has them withheld for a while. It sends nothing to anybody. */
import { LRUCache } from 'lru-cache'
import type { Clock } from '../../../platform/clock.ts'
import { type CatalogSnapshot, type Route, type RouteId, routeId } from '../../catalog/model.ts'
import type { Maintenance } from '../outages/maintenance.ts'
import { partsOfOrgKey, type RouteCircuits } from './route-circuits.ts'
import type { RouteHealth } from './route-health.ts'

/** How often it looks. */
export const healEveryMs = 5_000
/** So many openings of a circuit within the window, or so many refusals of the platform's key in a row, and the route is withheld. Ours. */
const openingsMin = 3
const refusalsMin = 3
const windowMs = 10 * 60_000
/** Most signs of each kind that are kept of a route. */
const signsKept = 10
/** Most routes that are watched concurrently. */
const watchedMax = 5_000

/** Who has seen a sign: one organisation, or several of different founders (null). */
type Witness = number | null

interface Signs {
  /** When the circuit opened or opened again, and for whom. */
  readonly openings: readonly { readonly atMs: number; readonly witness: Witness }[]
  /** Who saw refusals of the platform's key without a success between them. */
  readonly refusals: readonly Witness[]
}

export interface QuarantineDeps {
  readonly clock: Clock
  readonly circuits: Pick<RouteCircuits, 'available'>
  readonly health: Pick<RouteHealth, 'inMaintenance'>
  readonly maintenance: Pick<Maintenance, 'withholdFailing' | 'tidy'>
  /** Whether all organisations are of one founder. */
  hasOneFounder(): Promise<boolean>
  /** Who founded an organisation, or a word for the organisation itself. */
  founderOf(orgId: number): string | null | Promise<string | null>
  catalog(): CatalogSnapshot
}

const nothing: Signs = { openings: [], refusals: [] }

/** Counts in memory what dials of this process come to; `run` draws the conclusions. */
export class RouteQuarantine {
  readonly #deps: QuarantineDeps
  readonly #signs = new LRUCache<RouteId, Signs>({ max: watchedMax })

  constructor(deps: QuarantineDeps) {
    this.#deps = deps
  }

  /** Its circuit has opened, for the first time or again; the key says for whom. A circuit of calls on own keys is no sign. */
  opened(key: string): void {
    const parts = partsOfOrgKey(key)
    if (parts?.isOwnKey === true) return
    const route = parts?.routeId ?? key
    const signs = this.#signs.get(route) ?? nothing
    const nowMs = this.#deps.clock.nowMs()
    const openings = [...signs.openings.filter(({ atMs }) => nowMs - atMs < windowMs), { atMs: nowMs, witness: parts?.orgId ?? null }]
    this.#signs.set(route, { ...signs, openings: openings.slice(-signsKept) })
  }

  /** The provider refused the platform's key, or refused it on billing grounds. */
  refused(route: RouteId, orgId: number): void {
    const signs = this.#signs.get(route) ?? nothing
    this.#signs.set(route, { ...signs, refusals: [...signs.refusals, orgId].slice(-signsKept) })
  }

  /** It has served: refusals before it were no end of it. */
  served(route: RouteId): void {
    const signs = this.#signs.size === 0 ? undefined : this.#signs.get(route)
    if (signs !== undefined && signs.refusals.length > 0) this.#signs.set(route, { ...signs, refusals: [] })
  }

  /** Withholds what has shown signs enough, unless it is the last route of its model that the platform can serve, at all or in India: a failure says more than no route. */
  async run(): Promise<void> {
    const { maintenance } = this.#deps
    for (const route of [...this.#signs.keys()]) {
      const found = this.#judge(route)
      // What one founder's organisations saw counts where there are no others, whose route it would be.
      const counts = found !== null && ((await this.#isShared(found.witnesses)) || (await this.#deps.hasOneFounder()))
      const reason = counts ? found.reason : null
      const others = reason === null ? [] : this.#othersThatServe(route)
      if (reason === null || others.length === 0) continue
      await maintenance.withholdFailing(route, reason, others)
      // Only now: what could not be written is written at the next look.
      this.#signs.delete(route)
    }
    await maintenance.tidy()
  }

  /** What organisations of several founders saw is the route's doing; what those of one saw may be their own. */
  async #isShared(witnesses: readonly Witness[]): Promise<boolean> {
    const founders = await Promise.all(
      [...new Set(witnesses)].map(async orgId => (orgId === null ? null : ((await this.#deps.founderOf(orgId)) ?? `${orgId}`))),
    )
    return founders.includes(null) || new Set(founders).size > 1
  }

  #judge(route: RouteId): { readonly reason: string; readonly witnesses: readonly Witness[] } | null {
    const { openings, refusals } = this.#signs.get(route) ?? nothing
    const nowMs = this.#deps.clock.nowMs()
    if (refusals.length >= refusalsMin) return { reason: "the provider refuses the platform's key", witnesses: refusals }
    const recent = openings.filter(({ atMs }) => nowMs - atMs < windowMs)
    if (recent.length >= openingsMin) return { reason: 'its circuit keeps opening', witnesses: recent.map(({ witness }) => witness) }
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
