import { statement } from '../../platform/db.ts'

/** Appends one event to the outbox, and a delivery for each endpoint that hears it. Data is JSON text, body the envelope. */
export const insertEvent = statement<[orgId: number, id: string, type: string, createdS: bigint, data: string, body: string, at: Date]>(
  'webhooks.insert_event',
  `with event as (
     insert into webhook_events (org_id, id, type, created, data, body)
     values ($1::int, $2::text, $3::text, $4::bigint, $5::jsonb, $6::text)
     on conflict (id) do nothing returning seq)
   insert into webhook_deliveries (id, org_id, endpoint_id, event_id, event_seq, type, due_at, created_at)
   select gen_random_uuid(), $1::int, e.id, $2::text, event.seq, $3::text, $7::timestamptz, $7::timestamptz
   from event, webhook_endpoints e
   where e.org_id = $1::int and e.enabled and (e.subscribe_all or $3::text = any(e.event_types))`,
)
