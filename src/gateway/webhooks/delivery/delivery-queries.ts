import { statement } from '../../../platform/db/db.ts'

/** The longest claim. A claim that ends later than this from now was written before the database's clock was set back, so it counts as expired. */
const claimFurthest = `interval '1 hour'`
/** SQL condition: a process is sending delivery `d`. */
const isClaimed = `d.claimed_until > now() and d.claimed_until < now() + ${claimFurthest}`
/** SQL condition: endpoint `e` has failed more than once in a row. Such an endpoint gets one attempt at a time. */
const isFailing = `e.failures > 1`
/** SQL condition: endpoint `e` is paused. $1 is now, and $2 is the end of the longest possible pause. */
const isPaused = `e.paused_until > $1::timestamptz and e.paused_until <= $2::timestamptz`

/**
 * Returns endpoints with deliveries to send now, in random order. Also returns closed endpoints (disabled or deleted) with open deliveries. An event
 * leaves such a delivery when it commits while the endpoint is being closed. The statement steps from endpoint to endpoint over an index, so it costs
 * one look-up when there are no open deliveries. With `isThorough`, it also finds deliveries that wait too long because a clock was set back: first
 * attempts, and retries later than `retryFurthest`. Open endpoints in `leftOut` are not returned.
 */
export const endpointsWithWork = statement<
  [now: Date, pauseFurthest: Date, concurrency: number, isThorough: boolean, retryFurthest: Date, leftOut: readonly number[], limit: number],
  { endpointId: number; isClosed: boolean }
>(
  'webhooks.endpoints_with_work',
  `with recursive waiting (endpoint_id) as (
     (select d.endpoint_id from webhook_deliveries d where d.due_at is not null order by d.endpoint_id limit 1)
     union all
     select (select d.endpoint_id from webhook_deliveries d
             where d.due_at is not null and d.endpoint_id > w.endpoint_id order by d.endpoint_id limit 1)
     from waiting w where w.endpoint_id is not null)
   select w.endpoint_id as "endpointId", e.id is null or not e.enabled as "isClosed"
   from waiting w
   left join webhook_endpoints e on e.id = w.endpoint_id
   left join lateral (
     select count(*)::int as claimed from webhook_deliveries d where d.endpoint_id = w.endpoint_id and ${isClaimed}) c on true
   where w.endpoint_id is not null and case
     when e.id is null or not e.enabled then true
     when e.id = any($6::int[]) or c.claimed >= $3::int then false
     else exists (select 1 from webhook_deliveries d
                  where d.endpoint_id = e.id and d.queued_after = d.attempts and d.due_at is not null and (${isClaimed}) is not true)
       or (${isPaused}) is not true and (not (${isFailing}) or c.claimed = 0) and (
         exists (select 1 from webhook_deliveries d where d.endpoint_id = e.id and d.due_at <= $1::timestamptz and (${isClaimed}) is not true)
         or $4::bool and exists (
           select 1 from webhook_deliveries d
           where d.endpoint_id = e.id and (d.attempts = coalesce(d.queued_after, 0) and d.due_at is not null or d.due_at > $5::timestamptz)
             and (${isClaimed}) is not true))
     end
   order by random()
   limit $7::int`,
)

export interface OpenEndpoint {
  readonly id: number
  readonly orgId: number
  readonly url: string
  readonly secretSealed: string
}

/**
 * Locks open endpoints for a claim. Only one process claims from an endpoint at a time, so that it sees the claims of the others. Endpoints that
 * another process has locked are skipped.
 */
export const lockOpenEndpoints = statement<[ids: readonly number[]], OpenEndpoint>(
  'webhooks.lock_open_endpoints',
  `select e.id, e.org_id as "orgId", e.url, e.secret_sealed as "secretSealed"
   from webhook_endpoints e where e.id = any($1::int[]) and e.enabled order by e.id for no key update skip locked`,
)

export interface ClaimedDelivery {
  readonly id: string
  readonly orgId: number
  readonly endpointId: number
  readonly eventSeq: bigint
  readonly type: string
  readonly dueAt: Date
  /** Number of attempts, including this one. */
  readonly attempts: number
  /** Number of this attempt in the schedule of retries, from 1. */
  readonly attempt: number
  /** Null when the event is no longer stored. */
  readonly body: string | null
}

/**
 * Claims due deliveries of endpoints that the transaction has locked. Deliveries that a person queued come first, and then the others in the order of
 * their events. Each endpoint gets at most its concurrency, and only one delivery at a time after two failed attempts in a row. The first delivery of
 * every endpoint comes before the second delivery of any endpoint.
 */
export const claimDeliveries = statement<
  [
    now: Date,
    pauseFurthest: Date,
    concurrency: number,
    isThorough: boolean,
    retryFurthest: Date,
    endpointIds: readonly number[],
    perEndpoint: number,
    limit: number,
    claim: string,
    leaseMs: number,
  ],
  ClaimedDelivery
>(
  'webhooks.claim_deliveries',
  `with room as (
     select e.id as endpoint_id, $3::int - c.claimed as all_free,
            case when ${isPaused} then 0 when ${isFailing} then 1 - c.claimed else $3::int - c.claimed end as free
     from webhook_endpoints e
     cross join lateral (select count(*)::int as claimed from webhook_deliveries d where d.endpoint_id = e.id and ${isClaimed}) c
     where e.id = any($6::int[]) and e.enabled),
   picked as (
     select p.id, r.all_free, row_number() over (partition by r.endpoint_id order by p.is_later, p.event_seq) as place
     from room r
     cross join lateral (
       select * from (
         select d.id, d.event_seq, false as is_later from webhook_deliveries d
         where d.endpoint_id = r.endpoint_id and d.queued_after = d.attempts and d.due_at is not null and (${isClaimed}) is not true
         order by d.event_seq limit greatest(r.all_free, 0) for update skip locked) as by_hand
       union all
       select * from (
         select d.id, d.event_seq, true as is_later from webhook_deliveries d
         where d.endpoint_id = r.endpoint_id and d.due_at is not null and d.queued_after is distinct from d.attempts
           and (d.due_at <= $1::timestamptz or $4::bool and (d.attempts = 0 or d.due_at > $5::timestamptz))
           and (${isClaimed}) is not true
         order by d.event_seq limit greatest(r.free, 0) for update skip locked) as in_order) as p),
   chosen as (select id from picked where place <= least(all_free, $7::int) order by place, random() limit $8::int)
   update webhook_deliveries d
   set claim = $9::uuid, claimed_until = now() + make_interval(secs => $10::int / 1000.0), attempts = d.attempts + 1
   from chosen where d.id = chosen.id
   returning d.id, d.org_id as "orgId", d.endpoint_id as "endpointId", d.event_seq as "eventSeq", d.type, d.due_at as "dueAt", d.attempts,
             d.attempts - coalesce(d.queued_after, 0) as "attempt", (select v.body from webhook_events v where v.id = d.event_id) as "body"`,
)

/** Ends open deliveries of closed endpoints, because nothing will be sent to them. */
export const endDeliveriesOfClosed = statement<[endpointIds: readonly number[], at: Date, limit: number]>(
  'webhooks.end_deliveries_of_closed',
  `update webhook_deliveries set status = 'dead', error = 'endpoint_closed', due_at = null, claimed_until = null, settled_at = $2::timestamptz
   where id in (
     select d.id from webhook_deliveries d
     where d.endpoint_id = any($1::int[]) and d.due_at is not null
       and not exists (select 1 from webhook_endpoints e where e.id = d.endpoint_id and e.enabled)
     limit $3::int for update skip locked)`,
)
