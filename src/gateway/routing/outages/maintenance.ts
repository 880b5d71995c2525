/** Quarantines of the platform's routes. An operator quarantines a route, or the gateway does so when the route keeps failing. */
import type { Clock } from '../../../platform/clock.ts'
import type { Db, Tx } from '../../../platform/db/db.ts'
import type { ControlLog, NewsItem } from '../../../platform/db/db-control-log.ts'
import { fail } from '../../../platform/errors.ts'
import type { Log } from '../../../platform/observe/log.ts'
import { type CatalogSnapshot, type RouteId, routeId } from '../../catalog/model.ts'
import type { RouteHealth } from '../circuits/route-health.ts'
import {
  deleteMaintenance,
  deleteOldMaintenance,
  findMaintenance,
  listMaintenance,
  lockMaintenance,
  type MaintenanceRow,
  saveMaintenance,
} from './maintenance-queries.ts'

/** The kind of event that reports a changed quarantine. Its ref is the route. */
const changedKind = 'route_maintenance'
/** Length of the first quarantine by the gateway. Each following quarantine is twice as long, up to the maximum. Our choice. */
const firstMs = 2 * 60_000
const longestMs = 60 * 60_000
/** A quarantine that begins within this time after the end of the previous one counts as following it. Our choice. */
const memoryMs = 60 * 60_000
/** Maximum time for which one command of an operator may quarantine a route. */
export const operatorMaxMs = 30 * 24 * 60 * 60_000

export interface MaintenanceDeps {
  readonly db: Db
  readonly clock: Clock
  readonly log: Log
  readonly controlLog: ControlLog
  readonly health: Pick<RouteHealth, 'withhold' | 'release'>
  catalog(): CatalogSnapshot
}

type Saved = Pick<MaintenanceRow, 'route' | 'setBy' | 'reason' | 'strikes'>

/** A route that is quarantined now. */
export interface Withheld {
  readonly route: RouteId
  readonly setBy: 'operator' | 'gateway'
  readonly reason: string
  readonly since: Date
  readonly until: Date
}

/**
 * Quarantines of routes. Every process knows a change within a second. A quarantine survives restarts and ends by itself. Calls on own keys always
 * use the route.
 */
export class Maintenance {
  readonly #deps: MaintenanceDeps
  /**
   * The quarantined routes that this process has passed to its `RouteHealth`, with the end of each. When another process releases a route, this
   * process uses the map to release it too.
   */
  #known = new Map<RouteId, number>()
  /** Counts the reads of the table. The result of a read is ignored when a newer read has begun. */
  #reads = 0

  constructor(deps: MaintenanceDeps) {
    this.#deps = deps
  }

  /** Reads the quarantined routes, now and after each event about a change. */
  async start(): Promise<void> {
    const { controlLog, log } = this.#deps
    const reload = (): void => void this.#load().catch(error => log.warn('maintenance_not_read', { error }))
    controlLog.on(news => {
      if (news.kind === changedKind) reload()
    })
    controlLog.onGap(reload)
    await this.#load()
  }

  /** Returns the routes that are quarantined now. */
  async list(): Promise<readonly Withheld[]> {
    return this.#deps.db.many(listMaintenance, new Date(this.#deps.clock.nowMs()))
  }

  /** Quarantines a route of the catalog for `forMs` milliseconds and replaces an earlier quarantine. Throws `not_found`, `bad_request`. */
  async withhold(route: RouteId, forMs: number, reason: string): Promise<Withheld> {
    if (this.#providerOf(route) === null)
      throw fail('not_found', { message: `There is no route "${route}". A route is provider/model; GET /v1/models lists them.` })
    if (!(forMs >= 1000 && forMs <= operatorMaxMs)) throw fail('bad_request', { message: 'A route is withheld for 1 second to 30 days.' })
    const done = await this.#deps.controlLog.change(async tx => {
      await tx.one(lockMaintenance)
      return this.#save(tx, { route, setBy: 'operator', reason, strikes: 0 }, forMs)
    })
    await this.#load()
    return done
  }

  /**
   * Quarantines a route that the gateway considers failing. Each following quarantine is twice as long. Does nothing and returns null when the route
   * is already quarantined, or when all of `others` are. It does not matter which process quarantined them.
   */
  async withholdFailing(route: RouteId, reason: string, others: readonly RouteId[]): Promise<Withheld | null> {
    const { controlLog, clock, log } = this.#deps
    const done = await controlLog.change<Withheld | null>(async tx => {
      await tx.one(lockMaintenance)
      const nowMs = clock.nowMs()
      const withheld = new Set((await tx.many(listMaintenance, new Date(nowMs))).map(row => row.route))
      if (withheld.has(route) || others.every(other => withheld.has(other))) return { value: null, news: [] }
      const before = await tx.maybe(findMaintenance, route)
      const follows = before !== null && before.setBy === 'gateway' && nowMs - before.until.getTime() < memoryMs
      const strikes = follows ? before.strikes + 1 : 0
      return this.#save(tx, { route, setBy: 'gateway', reason, strikes }, Math.min(longestMs, firstMs * 2 ** strikes))
    })
    if (done === null) return null
    const [provider = ''] = route.split('/', 1)
    log.warn('route withheld', { provider, model: route.slice(provider.length + 1), code: done.setBy })
    await this.#load()
    return done
  }

  /** Releases a route immediately. Throws `not_found` when it is not quarantined. */
  async clear(route: RouteId): Promise<void> {
    const { controlLog, clock } = this.#deps
    const until = await controlLog.change(async tx => ({
      value: (await tx.maybe(deleteMaintenance, route))?.until ?? null,
      news: [{ kind: changedKind, ref: route }],
    }))
    await this.#load()
    if (until === null || until.getTime() <= clock.nowMs()) throw fail('not_found', { message: `The route "${route}" is not withheld.` })
  }

  /** Deletes rows that ended long ago, and reads the present state. The read is needed because events can be lost while the database is unavailable. */
  async tidy(): Promise<void> {
    await this.#deps.db.exec(deleteOldMaintenance, new Date(this.#deps.clock.nowMs() - memoryMs))
    await this.#load()
  }

  async #save(tx: Tx, { route, setBy, reason, strikes }: Saved, forMs: number): Promise<{ value: Withheld; news: readonly NewsItem[] }> {
    const nowMs = this.#deps.clock.nowMs()
    const value = { route, setBy, reason, since: new Date(nowMs), until: new Date(nowMs + forMs) }
    await tx.exec(saveMaintenance, route, setBy, reason, strikes, value.since, value.until)
    return { value, news: [{ kind: changedKind, ref: route }] }
  }

  async #load(): Promise<void> {
    const { health, clock } = this.#deps
    this.#reads++
    const read = this.#reads
    const rows = await this.list()
    if (read !== this.#reads) return
    const withheld = new Map(rows.map(({ route, until }) => [route, until.getTime()]))
    for (const route of this.#known.keys()) if (!withheld.has(route)) health.release(route)
    for (const { route, since, until } of rows) {
      if (this.#known.get(route) === until.getTime()) continue
      // If this process's clock is slow, the end in the row would come too late. The length of the quarantine therefore bounds it too.
      health.withhold(route, Math.min(until.getTime(), clock.nowMs() + until.getTime() - since.getTime()))
    }
    this.#known = withheld
  }

  #providerOf(route: RouteId): string | null {
    for (const model of this.#deps.catalog().models.values())
      if (model.kind !== 'virtual') for (const candidate of model.routes) if (routeId(candidate) === route) return candidate.provider.id
    return null
  }
}

/** A quarantined route as the operator sees it. */
export const withheldView = ({ route, setBy, reason, since, until }: Withheld) => ({
  route,
  maintenance: true as const,
  set_by: setBy,
  reason,
  since: since.toISOString(),
  until: until.toISOString(),
})

/** The reason of a quarantine that an operator set. */
export const setByOperator = 'set by the operator'
