import type { Clock } from '../../platform/clock.ts'
import type { Db } from '../../platform/db/db.ts'
import { type BacklogRow, countBacklog, type EndpointRow, listAllEndpoints } from './operator-queries.ts'
import { byHand } from './webhooks.ts'

/** Maximum number of endpoints of one list. Endpoints with problems come first. */
const endpointsListedMax = 500
const dayMs = 24 * 3600_000

export interface Backlog extends BacklogRow {
  /** How many milliseconds the oldest delivery that could be sent now has waited for a worker. Null when there is no such delivery. */
  readonly lateMs: number | null
}

/** Webhooks of the whole installation, for the operator. */
export class OperatorWebhooks {
  readonly #db: Db
  readonly #clock: Clock
  constructor(deps: { readonly db: Db; readonly clock: Clock }) {
    this.#db = deps.db
    this.#clock = deps.clock
  }

  /**
   * Returns the endpoints of an organisation. Returns those of all organisations when `orgId` is null. Disabled endpoints come first, then those that
   * fail.
   */
  list(orgId: number | null, limit = endpointsListedMax): Promise<EndpointRow[]> {
    return this.#db.many(listAllEndpoints, orgId, limit)
  }

  async backlog(): Promise<Backlog> {
    const nowMs = this.#clock.nowMs()
    const row = await this.#db.one(countBacklog, new Date(nowMs), new Date(nowMs - dayMs), byHand)
    return { ...row, lateMs: row.oldestDueAt === null ? null : nowMs - row.oldestDueAt.getTime() }
  }
}

/** An endpoint as the operator sees it. It has the host of the URL only, because the path may contain a secret of the receiver. */
export const endpointView = (row: EndpointRow) => ({
  id: row.id,
  org_id: row.orgId,
  host: new URL(row.url).host,
  enabled: row.enabled,
  disabled_reason: row.disabledReason,
  failures: row.failures,
  paused_until: row.pausedUntil?.toISOString() ?? null,
  open: row.open,
  oldest_at: row.oldestAt?.toISOString() ?? null,
  last_code: row.lastCode,
  last_error: row.lastError,
})

/** The backlog as the operator sees it. */
export const backlogView = ({ endpoints, disabled, open, dueNow, oldestDueAt, lateMs, dead }: Backlog) => ({
  endpoints,
  disabled,
  open,
  due_now: dueNow,
  oldest_due_at: oldestDueAt?.toISOString() ?? null,
  late_s: lateMs === null ? null : Math.round(lateMs / 1000),
  dead_last_day: dead,
})
