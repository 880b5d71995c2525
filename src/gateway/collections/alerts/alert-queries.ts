import { statement } from '../../../platform/db/db.ts'

export type AlertMetric = 'error_rate' | 'latency_p95'
export type AlertChannel = 'email' | 'webhook'

/** An alert of a collection. */
export interface AlertRow {
  readonly id: number
  readonly metric: AlertMetric
  /** A share of failed canaries, or a latency in milliseconds. */
  readonly threshold: number
  readonly channel: AlertChannel
  readonly target: string | null
  readonly firingSince: Date | null
  /** The time of the last notification that the alert fires. */
  readonly notifiedAt: Date | null
  readonly createdAt: Date
}

const columns = `id, metric, threshold, channel, target, firing_since as "firingSince", told_at as "notifiedAt", created_at as "createdAt"`

export const listAlerts = statement<[orgId: number, collectionId: number], AlertRow>(
  'collections.list_alerts',
  `select ${columns} from collection_alerts where org_id = $1::int and collection_id = $2::int order by id`,
)

/** Lists the URLs of the organisation's webhooks that currently receive alerts. */
export const listHearing = statement<[orgId: number], { url: string }>(
  'collections.list_hearing',
  `select url from webhook_endpoints where org_id = $1::int and enabled and (subscribe_all or 'collection.alert' = any(event_types))`,
)

/** Reads and locks the alerts. The process that evaluates them holds the lock, so no other process reports the same crossing of a threshold. */
export const lockAlerts = statement<[orgId: number, collectionId: number], AlertRow>(
  'collections.lock_alerts',
  `select ${columns} from collection_alerts where org_id = $1::int and collection_id = $2::int order by id for no key update`,
)

/** Locks the collection. Its new alerts are then added one after the other, so the count of its alerts is right. */
export const lockForAlert = statement<[orgId: number, collectionId: number], { id: number }>(
  'collections.lock_for_alert',
  'select id from collections where org_id = $1::int and id = $2::int for no key update',
)

export const countAlerts = statement<[orgId: number, collectionId: number], { count: number }>(
  'collections.count_alerts',
  'select count(*)::int as "count" from collection_alerts where org_id = $1::int and collection_id = $2::int',
)

export const insertAlert = statement<
  [
    orgId: number,
    collectionId: number,
    metric: AlertMetric,
    threshold: number,
    channel: AlertChannel,
    target: string | null,
    createdBy: number | null,
    now: Date,
  ],
  AlertRow
>(
  'collections.insert_alert',
  `insert into collection_alerts (org_id, collection_id, metric, threshold, channel, target, created_by, created_at)
   values ($1::int, $2::int, $3::text, $4::float8, $5::text, $6::text, $7::int, $8::timestamptz) returning ${columns}`,
)

export const deleteAlert = statement<[orgId: number, collectionId: number, id: number], { id: number }>(
  'collections.delete_alert',
  'delete from collection_alerts where org_id = $1::int and collection_id = $2::int and id = $3::int returning id',
)

export const noteAlert = statement<[orgId: number, id: number, firingSince: Date | null, notifiedAt: Date | null]>(
  'collections.note_alert',
  'update collection_alerts set firing_since = $3::timestamptz, told_at = $4::timestamptz where org_id = $1::int and id = $2::int',
)

/** Clears the firing state, because the collection is no longer monitored. The time of the last notification stays. */
export const quietAlerts = statement<[orgId: number, collectionId: number]>(
  'collections.quiet_alerts',
  'update collection_alerts set firing_since = null where org_id = $1::int and collection_id = $2::int and firing_since is not null',
)

/** The sums of the canaries of a step. */
export interface StepFigures {
  readonly model: string
  readonly pinned: string
  readonly checks: number
  readonly failures: number
  readonly p95Ms: number | null
}

export const sumChecks = statement<[orgId: number, collectionId: number, since: Date], StepFigures>(
  'collections.sum_checks',
  `select model, pinned, count(*)::int as "checks", (count(*) filter (where not ok))::int as "failures",
     percentile_disc(0.95) within group (order by latency_ms) filter (where ok) as "p95Ms"
   from collection_checks where org_id = $1::int and collection_id = $2::int and at > $3::timestamptz
   group by 1, 2`,
)

/** Returns the active people of the organisation to notify: the member with the given address. When no member has the address, the owners. */
export const alertReaders = statement<[orgId: number, email: string | null], { userId: number; email: string; orgName: string }>(
  'collections.alert_readers',
  `with people as materialized (
     select u.id, u.email, m.role, lower(u.email) = lower($2::text) as is_named
     from org_members m join users u on u.id = m.user_id where m.org_id = $1::int and m.status = 'active')
   select p.id as "userId", p.email as "email", o.name as "orgName" from people p, orgs o
   where o.id = $1::int and case when exists (select 1 from people where is_named) then p.is_named else p.role = 'owner' end
   order by p.id`,
)

/** Returns the address in the member's own spelling. Returns no row when no active member has this address. */
export const findMemberAddress = statement<[orgId: number, email: string], { email: string }>(
  'collections.find_member_address',
  `select u.email as "email" from org_members m join users u on u.id = m.user_id
   where m.org_id = $1::int and m.status = 'active' and lower(u.email) = lower($2::text) limit 1`,
)
