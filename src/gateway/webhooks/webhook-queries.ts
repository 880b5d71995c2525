import { statement } from '../../platform/db/db.ts'
import type { EventType } from './events/event-catalog.ts'

/** A webhook endpoint without its secret. */
export interface WebhookRow {
  readonly id: number
  readonly url: string
  readonly description: string
  readonly subscribeAll: boolean
  readonly eventTypes: readonly EventType[]
  readonly enabled: boolean
  /** Code of the reason why the endpoint is disabled. Null while it is enabled. */
  readonly disabledReason: string | null
  /** The number of events that were not queued because too many deliveries waited. */
  readonly dropped: bigint
  /** The time of the last of them. Null when there was none. */
  readonly droppedAt: Date | null
  readonly createdAt: Date
}

const columns = `id, url, description, subscribe_all as "subscribeAll", event_types as "eventTypes", enabled, disabled_reason as "disabledReason",
     dropped, dropped_at as "droppedAt", created_at as "createdAt"`

export const listWebhooks = statement<[orgId: number], WebhookRow>(
  'webhooks.list_webhooks',
  `select ${columns} from webhook_endpoints where org_id = $1::int order by id`,
)

export const findWebhook = statement<[orgId: number, id: number], WebhookRow>(
  'webhooks.find_webhook',
  `select ${columns} from webhook_endpoints where org_id = $1::int and id = $2::int`,
)

/** Locks the endpoint. Every change of an endpoint does this first, and so does every change of all its deliveries. */
export const lockWebhook = statement<[orgId: number, id: number], WebhookRow>(
  'webhooks.lock_webhook',
  `select ${columns} from webhook_endpoints where org_id = $1::int and id = $2::int for no key update`,
)

/** Locks the organisation, so that concurrent creations of endpoints are counted correctly. */
export const lockOrg = statement<[orgId: number], { id: number }>('webhooks.lock_org', `select id from orgs where id = $1::int for no key update`)

export const countWebhooks = statement<[orgId: number], { count: number }>(
  'webhooks.count_webhooks',
  `select count(*)::int as "count" from webhook_endpoints where org_id = $1::int`,
)

/** Returns the id of the next endpoint. The secret is sealed for this id before the row is written. */
export const nextWebhookId = statement<[], { id: number }>(
  'webhooks.next_webhook_id',
  `select nextval(pg_get_serial_sequence('webhook_endpoints', 'id'))::int as "id"`,
)

export const insertWebhook = statement<
  [
    orgId: number,
    id: number,
    url: string,
    description: string,
    subscribeAll: boolean,
    eventTypes: readonly string[],
    secretSealed: string,
    createdBy: number,
    now: Date,
  ],
  WebhookRow
>(
  'webhooks.insert_webhook',
  `insert into webhook_endpoints (org_id, id, url, description, subscribe_all, event_types, secret_sealed, created_by, created_at)
   values ($1::int, $2::int, $3::text, $4::text, $5::bool, $6::text[], $7::text, $8::int, $9::timestamptz)
   returning ${columns}`,
)

export const changeWebhook = statement<[orgId: number, id: number, description: string, subscribeAll: boolean, eventTypes: readonly string[]], WebhookRow>(
  'webhooks.change_webhook',
  `update webhook_endpoints set description = $3::text, subscribe_all = $4::bool, event_types = $5::text[]
   where org_id = $1::int and id = $2::int
   returning ${columns}`,
)

/** Disables the endpoint with a reason. Without a reason, enables it and sets its failures to 0. */
export const switchWebhook = statement<[orgId: number, id: number, disabledReason: string | null], WebhookRow>(
  'webhooks.switch_webhook',
  `update webhook_endpoints set enabled = $3::text is null, disabled_reason = $3::text,
          failures = case when $3::text is null then 0 else failures end, paused_until = null
   where org_id = $1::int and id = $2::int
   returning ${columns}`,
)

export const replaceSecret = statement<[orgId: number, id: number, secretSealed: string]>(
  'webhooks.replace_secret',
  `update webhook_endpoints set secret_sealed = $3::text where org_id = $1::int and id = $2::int`,
)

export const deleteWebhook = statement<[orgId: number, id: number], { id: number }>(
  'webhooks.delete_webhook',
  `delete from webhook_endpoints where org_id = $1::int and id = $2::int returning id`,
)
