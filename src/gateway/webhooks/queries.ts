import { statement } from '../../platform/db/db.ts'

/**
 * Writes one event for each of these organisations, and a delivery for each endpoint that receives the event. When a URL is given, only endpoints
 * with that URL get a delivery. An endpoint with `waitingMax` waiting deliveries gets no delivery, but counts the event as dropped. `data` is JSON
 * text, and `bodies` are the envelopes. Endpoints are locked in the order of their ids.
 */
export const insertEvents = statement<
  [
    orgIds: readonly number[],
    ids: readonly string[],
    type: string,
    createdS: bigint,
    data: string,
    bodies: readonly string[],
    at: Date,
    url: string | null,
    waitingMax: number,
  ]
>(
  'webhooks.insert_events',
  `with event as (
     insert into webhook_events (org_id, id, type, created, data, body)
     select given.org_id, given.id, $3::text, $4::bigint, $5::jsonb, given.body
     from unnest($1::int[], $2::text[], $6::text[]) as given (org_id, id, body)
     on conflict (id) do nothing returning org_id, id, seq),
   receiver as materialized (
     select event.org_id, event.id, event.seq, e.id as endpoint_id, waiting.count < $9::int as has_room
     from event join webhook_endpoints e on e.org_id = event.org_id
     cross join lateral (
       select count(*)::int as count from (
         select 1 from webhook_deliveries d where d.endpoint_id = e.id and d.due_at is not null limit $9::int) as found) as waiting
     where e.enabled and (e.subscribe_all or $3::text = any(e.event_types)) and ($8::text is null or e.url = $8::text)),
   crowded as materialized (
     select e.id from webhook_endpoints e
     where e.id in (select r.endpoint_id from receiver r where not r.has_room) order by e.id for no key update),
   counted as (
     update webhook_endpoints e set dropped = e.dropped + 1, dropped_at = $7::timestamptz from crowded where e.id = crowded.id)
   insert into webhook_deliveries (id, org_id, endpoint_id, event_id, event_seq, type, due_at, created_at)
   select gen_random_uuid(), r.org_id, r.endpoint_id, r.id, r.seq, $3::text, $7::timestamptz, $7::timestamptz
   from receiver r where r.has_room`,
)
