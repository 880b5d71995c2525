/** Statements about the webhooks of all organisations, for the operator. They return no secret and no body. */
import { statement } from '../../platform/db/db.ts'

export interface EndpointRow {
  readonly id: number
  readonly orgId: number
  readonly url: string
  readonly enabled: boolean
  readonly disabledReason: string | null
  /** Failed attempts since the last success. */
  readonly failures: number
  readonly pausedUntil: Date | null
  /** Deliveries that are still to be sent. */
  readonly open: number
  /** When the oldest of the deliveries that are still to be sent was created. */
  readonly oldestAt: Date | null
  /** HTTP status of the last attempt of the first delivery that is still to be sent and was tried. Null when there was no reply, and without such a delivery. */
  readonly lastCode: number | null
  /** Error code of that attempt. It is never text of the receiver. */
  readonly lastError: string | null
}

export const listAllEndpoints = statement<[orgId: number | null, limit: number], EndpointRow>(
  'webhooks.list_all_endpoints',
  `select e.id, e.org_id as "orgId", e.url, e.enabled, e.disabled_reason as "disabledReason", e.failures, e.paused_until as "pausedUntil",
          d.open as "open", d.oldest as "oldestAt", l.code as "lastCode", l.error as "lastError"
   from webhook_endpoints e
   left join lateral (
     select count(*)::int as open, min(created_at) as oldest from webhook_deliveries d where d.endpoint_id = e.id and d.due_at is not null) d on true
   left join lateral (
     select code, error from webhook_deliveries t where t.endpoint_id = e.id and t.due_at is not null and t.attempts > 0 order by t.event_seq limit 1) l on true
   where $1::int is null or e.org_id = $1::int
   order by e.enabled, e.failures desc, d.oldest, e.id limit $2::int`,
)

export interface BacklogRow {
  readonly endpoints: number
  /** The number of endpoints that the gateway disabled. It does not count endpoints that a person disabled. */
  readonly disabled: number
  readonly open: number
  /** Deliveries that a worker would send now. They are due, and their endpoints are neither failing nor paused. */
  readonly dueNow: number
  readonly oldestDueAt: Date | null
  /** Deliveries that were given up since `since`. */
  readonly dead: number
}

export const countBacklog = statement<[now: Date, since: Date, byHand: string], BacklogRow>(
  'webhooks.count_backlog',
  `select (select count(*)::int from webhook_endpoints) as "endpoints",
          (select count(*)::int from webhook_endpoints where not enabled and disabled_reason <> $3::text) as "disabled",
          (select count(*)::int from webhook_deliveries where due_at is not null) as "open",
          due.count as "dueNow", due.oldest as "oldestDueAt",
          (select count(*)::int from webhook_deliveries where status = 'dead' and settled_at >= $2::timestamptz) as "dead"
   from (select count(*)::int as count, min(d.due_at) as oldest from webhook_deliveries d join webhook_endpoints e on e.id = d.endpoint_id
         where d.due_at <= $1::timestamptz and e.enabled and e.failures < 2 and (e.paused_until <= $1::timestamptz) is not false) due`,
)
