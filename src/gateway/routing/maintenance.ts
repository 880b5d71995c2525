/** Routes of the platform that are withheld: by an operator, or by the gateway when it sees that they fail. */
import type { Clock } from '../../platform/clock.ts'
import type { Db } from '../../platform/db.ts'
import type { ControlLog } from '../../platform/db-control-log.ts'
import { fail } from '../../platform/errors.ts'
import type { Log } from '../../platform/log.ts'
import { type CatalogSnapshot, type RouteId, routeId } from '../catalog/model.ts'
import { deleteMaintenance, deleteOldMaintenance, findMaintenance, listMaintenance, type MaintenanceRow, saveMaintenance } from './maintenance-queries.ts'
import type { RouteHealth } from './route-health.ts'

/** Kind of the news that it changed; the ref is the route. */
const changedKind = 'route_maintenance'
/** First time that the gateway withholds a route; each time that follows within the memory below takes twice as long. Ours. */
const firstMs = 2 * 60_000
const longestMs = 60 * 60_000
/** For so long behind the end of a maintenance the next one counts as following it. Ours. */
const memoryMs = 60 * 60_000
/** Longest that an operator may withhold a route at once. */
export const operatorMaxMs = 30 * 24 * 60 * 60_000

export interface MaintenanceDeps {
  readonly db: Db
  readonly clock: Clock
  readonly log: Log
  readonly controlLog: ControlLog
  readonly health: Pick<RouteHealth, 'withhold' | 'release'>
  catalog(): CatalogSnapshot
}

/** A route that is withheld now. */
export interface Withheld {
  readonly route: RouteId
  readonly setBy: 'operator' | 'gateway'
  readonly reason: string
  readonly since: Date
  readonly until: Date
}

/** What is withheld is known to every process within a second and outlives restarts; it ends by itself. A caller's own key is always served. */
export class Maintenance {
  readonly #deps: MaintenanceDeps
  /** What this process has told its health of, so that what was lifted elsewhere is lifted here. */
  #known = new Set<RouteId>()

  constructor(deps: MaintenanceDeps) {
    this.#deps = deps
  }

  /** Reads what is withheld, and goes on hearing of changes. */
  async start(): Promise<void> {
    const { controlLog, log } = this.#deps
    const reload = (): void => void this.#load().catch(error => log.warn('maintenance_not_read', { error }))
    controlLog.on(news => {
      if (news.kind === changedKind) reload()
    })
    controlLog.onGap(reload)
    await this.#load()
  }

  /** What is withheld now. */
  async list(): Promise<readonly Withheld[]> {
    return this.#deps.db.many(listMaintenance, new Date(this.#deps.clock.nowMs()))
  }

  /** Withholds a route of the catalog for so long from now, in place of what was said of it before. Throws `not_found`, `bad_request`. */
  async withhold(route: RouteId, forMs: number, reason: string): Promise<Withheld> {
    if (this.#providerOf(route) === null)
      throw fail('not_found', { message: `There is no route "${route}". A route is provider/model; GET /v1/models lists them.` })
    if (!(forMs >= 1000 && forMs <= operatorMaxMs)) throw fail('bad_request', { message: 'A route is withheld for 1 second to 30 days.' })
    return this.#save({ route, setBy: 'operator', reason, strikes: 0 }, forMs)
  }

  /** The gateway's own judgement: for longer each time in a row, and never over a word of the operator. Null when that stands. */
  async withholdFailing(route: RouteId, reason: string): Promise<Withheld | null> {
    const { db, clock } = this.#deps
    const before = await db.maybe(findMaintenance, route)
    const nowMs = clock.nowMs()
    if (before !== null && before.until.getTime() > nowMs) return null
    const follows = before !== null && before.setBy === 'gateway' && nowMs - before.until.getTime() < memoryMs
    const strikes = follows ? before.strikes + 1 : 0
    return this.#save({ route, setBy: 'gateway', reason, strikes }, Math.min(longestMs, firstMs * 2 ** strikes))
  }

  /** Serves a route again at once. Throws `not_found` when it is not withheld. */
  async clear(route: RouteId): Promise<void> {
    const { controlLog, clock } = this.#deps
    const until = await controlLog.change(async tx => ({
      value: (await tx.maybe(deleteMaintenance, route))?.until ?? null,
      news: [{ kind: changedKind, ref: route }],
    }))
    await this.#load()
    if (until === null || until.getTime() <= clock.nowMs()) throw fail('not_found', { message: `The route "${route}" is not withheld.` })
  }

  /** Forgets what ended long ago. */
  async sweep(): Promise<void> {
    await this.#deps.db.exec(deleteOldMaintenance, new Date(this.#deps.clock.nowMs() - memoryMs))
  }

  async #save({ route, setBy, reason, strikes }: Pick<MaintenanceRow, 'route' | 'setBy' | 'reason' | 'strikes'>, forMs: number): Promise<Withheld> {
    const { controlLog, clock, health, log } = this.#deps
    const nowMs = clock.nowMs()
    const [since, until] = [new Date(nowMs), new Date(nowMs + forMs)]
    await controlLog.change(async tx => {
      await tx.exec(saveMaintenance, route, setBy, reason, strikes, since, until)
      return { value: undefined, news: [{ kind: changedKind, ref: route }] }
    })
    this.#known.add(route)
    health.withhold(route, until.getTime())
    const [provider] = route.split('/', 1)
    log.warn('route withheld', { provider: provider ?? '', model: route.slice((provider ?? '').length + 1), code: setBy })
    return { route, setBy, reason, since, until }
  }

  async #load(): Promise<void> {
    const { health } = this.#deps
    const rows = await this.list()
    const withheld = new Set(rows.map(({ route }) => route))
    for (const route of this.#known) if (!withheld.has(route)) health.release(route)
    for (const { route, until } of rows) health.withhold(route, until.getTime())
    this.#known = withheld
  }

  #providerOf(route: RouteId): string | null {
    for (const model of this.#deps.catalog().models.values())
      if (model.kind !== 'virtual') for (const candidate of model.routes) if (routeId(candidate) === route) return candidate.provider.id
    return null
  }
}
