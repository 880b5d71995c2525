/** Finds platform routes that fail repeatedly and quarantines them for a time. It sends no request to a provider. */
import { LRUCache } from 'lru-cache'
import type { Clock } from '../../../platform/clock.ts'
import { type CatalogSnapshot, type Route, type RouteId, routeId } from '../../catalog/model.ts'
import type { Maintenance } from '../outages/maintenance.ts'
import { partsOfOrgKey, type RouteCircuits } from './route-circuits.ts'
import type { RouteHealth } from './route-health.ts'

/** Pause between two checks, in milliseconds. */
export const healEveryMs = 5_000
/**
 * A route is quarantined after this many openings of its circuit within the window, or this many consecutive refusals of the platform's key. Our
 * choice.
 */
const openingsMin = 3
const refusalsMin = 3
const windowMs = 10 * 60_000
/** Maximum number of signs of each kind that are kept for a route. */
const signsKept = 10
/** Maximum number of routes that are watched concurrently. */
const watchedMax = 5_000

/**
 * The organisation that saw a sign of failure. Null means that organisations of several founders saw it. A founder is the person who created an
 * organisation.
 */
type Witness = number | null

interface Signs {
  /** The first and repeated openings of the circuit, with the witness of each. */
  readonly openings: readonly { readonly atMs: number; readonly witness: Witness }[]
  /** The witnesses of refusals of the platform's key since the last success. */
  readonly refusals: readonly Witness[]
}

export interface QuarantineDeps {
  readonly clock: Clock
  readonly circuits: Pick<RouteCircuits, 'available'>
  readonly health: Pick<RouteHealth, 'inMaintenance'>
  readonly maintenance: Pick<Maintenance, 'withholdFailing' | 'tidy'>
  /** Returns whether all organisations have the same founder. */
  hasOneFounder(): Promise<boolean>
  /** Returns the founder of an organisation, or a text for the organisation itself. */
  founderOf(orgId: number): string | null | Promise<string | null>
  catalog(): CatalogSnapshot
}

const nothing: Signs = { openings: [], refusals: [] }

/** Counts the signs of failure from the dials of this process, in memory. `run` decides which routes to quarantine. */
export class RouteQuarantine {
  readonly #deps: QuarantineDeps
  readonly #signs = new LRUCache<RouteId, Signs>({ max: watchedMax })

  constructor(deps: QuarantineDeps) {
    this.#deps = deps
  }

  /**
   * Records that a circuit opened, for the first time or again. The key names the organisation if the circuit belongs to one. Circuits for calls on
   * own keys do not count.
   */
  opened(key: string): void {
    const parts = partsOfOrgKey(key)
    if (parts?.isOwnKey === true) return
    const route = parts?.routeId ?? key
    const signs = this.#signs.get(route) ?? nothing
    const nowMs = this.#deps.clock.nowMs()
    const openings = [...signs.openings.filter(({ atMs }) => nowMs - atMs < windowMs), { atMs: nowMs, witness: parts?.orgId ?? null }]
    this.#signs.set(route, { ...signs, openings: openings.slice(-signsKept) })
  }

  /** Records that the provider refused the platform's key, for billing reasons or others. */
  refused(route: RouteId, orgId: number): void {
    const signs = this.#signs.get(route) ?? nothing
    this.#signs.set(route, { ...signs, refusals: [...signs.refusals, orgId].slice(-signsKept) })
  }

  /** Records a success of the route and drops its earlier refusals. */
  served(route: RouteId): void {
    const signs = this.#signs.size === 0 ? undefined : this.#signs.get(route)
    if (signs !== undefined && signs.refusals.length > 0) this.#signs.set(route, { ...signs, refusals: [] })
  }

  /**
   * Quarantines the routes that have enough signs of failure. The last route of a model that the platform can serve is never quarantined. For a route
   * in India, the last route in India is never quarantined. The provider's error is more useful to a caller than an error that there is no route.
   */
  async run(): Promise<void> {
    const { maintenance } = this.#deps
    for (const route of [...this.#signs.keys()]) {
      const found = this.#judge(route)
      // When the organisations of only one founder saw the signs, they count only if the installation has no other founder.
      const counts = found !== null && ((await this.#isShared(found.witnesses)) || (await this.#deps.hasOneFounder()))
      const reason = counts ? found.reason : null
      const others = reason === null ? [] : this.#othersThatServe(route)
      if (reason === null || others.length === 0) continue
      await maintenance.withholdFailing(route, reason, others)
      // The signs are deleted after the write. A failed write is therefore repeated at the next check.
      this.#signs.delete(route)
    }
    await maintenance.tidy()
  }

  /**
   * Returns whether organisations of several founders saw the signs. The calls of one founder may themselves have caused signs that only that founder
   * saw.
   */
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
   * Returns the other routes of the model that the platform could serve instead. For a route in India, only routes in India are returned, because
   * some callers may use no others. The list is empty for a route that is not in the catalog or that the platform does not serve.
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
