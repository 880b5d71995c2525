import { statement } from '../../platform/db/db.ts'

/**
 * Writes one event for each of these organisations, and a delivery for each endpoint that receives the event. When a URL is given, only endpoints
 * with that URL get a delivery. `data` is JSON text, and `bodies` are the envelopes.
 */
export const insertEvents = statement<
  [orgIds: readonly number[], ids: readonly string[], type: string, createdS: bigint, data: string, bodies: readonly string[], at: Date, url: string | null]
>(
  'webhooks.insert_events',
  `with event as (
     insert into webhook_events (org_id, id, type, created, data, body)
     select given.org_id, given.id, $3::text, $4::bigint, $5::jsonb, given.body
     from unnest($1::int[], $2::text[], $6::text[]) as given (org_id, id, body)
     on conflict (id) do nothing returning org_id, id, seq)
   insert into webhook_deliveries (id, org_id, endpoint_id, event_id, event_seq, type, due_at, created_at)
   select gen_random_uuid(), event.org_id, e.id, event.id, event.seq, $3::text, $7::timestamptz, $7::timestamptz
   from event join webhook_endpoints e on e.org_id = event.org_id
   where e.enabled and (e.subscribe_all or $3::text = any(e.event_types)) and ($8::text is null or e.url = $8::text)`,
)
