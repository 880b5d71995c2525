import { statement } from '../../../platform/db/db.ts'
import type { EventType } from '../events/event-catalog.ts'

/** One delivery as its organisation sees it. */
export interface DeliveryRow {
  readonly id: string
  readonly eventId: string
  /** The position of the event in the order of events. The list has the same order. */
  readonly eventSeq: bigint
  readonly type: EventType
  readonly status: 'pending' | 'acknowledged' | 'failed' | 'dead'
  readonly attempts: number
  /** HTTP status of the last attempt. Null when there was no reply. */
  readonly code: number | null
  readonly error: string | null
  /** When the delivery is to be sent. Null when the delivery is settled. */
  readonly dueAt: Date | null
  readonly createdAt: Date
}

/** An attempt in the log of a delivery. */
export interface LoggedAttempt {
  /** Number of the attempt, from 1. */
  readonly n: number
  /** When it began, in Unix milliseconds. */
  readonly at: number
  /** How long it took. */
  readonly ms: number
  /** HTTP status of the reply. Null when there was none. */
  readonly code: number | null
  readonly error: string | null
}

/** A delivery with what was sent and with its attempts. */
export interface DeliveryDetail extends DeliveryRow {
  /** The envelope, byte for byte. Null when the event is no longer stored. */
  readonly body: string | null
  readonly attemptLog: readonly LoggedAttempt[]
}

const columns = `id, event_id as "eventId", event_seq as "eventSeq", type, status, attempts, code, error, due_at as "dueAt", created_at as "createdAt"`

/** Returns deliveries of events before `before`, newest first. */
export const listDeliveries = statement<[orgId: number, endpointId: number, before: bigint | null, limit: number], DeliveryRow>(
  'webhooks.list_deliveries',
  `select ${columns} from webhook_deliveries
   where org_id = $1::int and endpoint_id = $2::int and ($3::bigint is null or event_seq < $3::bigint)
   order by event_seq desc
   limit $4::int`,
)

/** Returns one delivery with its envelope and its attempts. */
export const readDelivery = statement<[orgId: number, endpointId: number, id: string], DeliveryDetail>(
  'webhooks.read_delivery',
  `select ${columns}, attempt_log as "attemptLog", (select v.body from webhook_events v where v.id = event_id and v.org_id = $1::int) as "body"
   from webhook_deliveries where org_id = $1::int and endpoint_id = $2::int and id = $3::uuid`,
)

/** Writes a ping and one delivery of it to the endpoint, whatever events the endpoint subscribes to. `data` is JSON text, and `body` is the envelope. */
export const insertPing = statement<
  [orgId: number, endpointId: number, eventId: string, created: bigint, data: string, body: string, at: Date, deliveryId: string],
  DeliveryRow
>(
  'webhooks.insert_ping',
  `with event as (
     insert into webhook_events (org_id, id, type, created, data, body)
     values ($1::int, $3::text, 'ping', $4::bigint, $5::jsonb, $6::text)
     returning seq)
   insert into webhook_deliveries (id, org_id, endpoint_id, event_id, event_seq, type, due_at, queued_after, created_at)
   select $8::uuid, $1::int, $2::int, $3::text, event.seq, 'ping', $7::timestamptz, 0, $7::timestamptz from event
   returning ${columns}`,
)

/** Returns the number of deliveries that wait for the endpoint, at most `limit`. */
export const countWaiting = statement<[endpointId: number, limit: number], { count: number }>(
  'webhooks.count_waiting',
  `select count(*)::int as "count" from (
     select 1 from webhook_deliveries where endpoint_id = $1::int and due_at is not null limit $2::int) as found`,
)

/** Returns a row if the delivery exists. `hasBody` says whether its event is still stored, and `isWaiting` whether it is still to be sent. */
export const findDelivery = statement<[orgId: number, endpointId: number, id: string], { hasBody: boolean; isWaiting: boolean }>(
  'webhooks.find_delivery',
  `select d.due_at is not null as "isWaiting", exists (select 1 from webhook_events v where v.id = d.event_id and v.body is not null) as "hasBody"
   from webhook_deliveries d where d.org_id = $1::int and d.endpoint_id = $2::int and d.id = $3::uuid`,
)

/** Sets the delivery to pending and due now. If a process is sending it, that process keeps its claim. */
export const requeueDelivery = statement<[orgId: number, endpointId: number, id: string, at: Date], DeliveryRow>(
  'webhooks.requeue_delivery',
  `update webhook_deliveries set status = 'pending', code = null, error = null, due_at = $4::timestamptz, settled_at = null, queued_after = attempts
   where org_id = $1::int and endpoint_id = $2::int and id = $3::uuid
   returning ${columns}`,
)

/** Ends the unsent deliveries to an endpoint. `reason` becomes their error. */
export const endOpenDeliveries = statement<[orgId: number, endpointId: number, reason: string, at: Date]>(
  'webhooks.end_open_deliveries',
  `update webhook_deliveries set status = 'dead', error = $3::text, due_at = null, claimed_until = null, settled_at = $4::timestamptz
   where org_id = $1::int and endpoint_id = $2::int and due_at is not null`,
)
