import { statement } from '../../../platform/db/db.ts'

type Round = [
  orgId: number,
  collectionId: number,
  at: Date,
  models: readonly string[],
  pinned: readonly string[],
  providers: readonly (string | null)[],
  oks: readonly boolean[],
  latenciesMs: readonly (number | null)[],
  codes: readonly (string | null)[],
]

/** Stores the results of one round, one row per step. A second round with the same millisecond changes nothing. */
export const insertChecks = statement<Round>(
  'collections.insert_checks',
  `insert into collection_checks (org_id, collection_id, at, model, pinned, provider, ok, latency_ms, code)
   select $1::int, $2::int, $3::timestamptz, f.model, f.pinned, f.provider, f.ok, f.latency_ms, f.code
   from unnest($4::text[], $5::text[], $6::text[], $7::bool[], $8::int[], $9::text[]) as f (model, pinned, provider, ok, latency_ms, code)
   on conflict do nothing`,
)

/** Stores the last canary of each step. While canaries fail, the row keeps the provider that answered last. */
export const upsertCanaries = statement<
  [
    orgId: number,
    collectionId: number,
    at: Date,
    models: readonly string[],
    pinned: readonly string[],
    providers: readonly (string | null)[],
    oks: readonly boolean[],
    codes: readonly (string | null)[],
  ]
>(
  'collections.upsert_canaries',
  `insert into collection_canaries as c (org_id, collection_id, at, model, pinned, provider, ok, code)
   select $1::int, $2::int, $3::timestamptz, f.model, f.pinned, f.provider, f.ok, f.code
   from unnest($4::text[], $5::text[], $6::text[], $7::bool[], $8::text[]) as f (model, pinned, provider, ok, code)
   on conflict (collection_id, model, pinned) do update
   set at = excluded.at, provider = coalesce(excluded.provider, c.provider), ok = excluded.ok, code = excluded.code
   where c.at <= excluded.at`,
)

/** Adds one canary to each of these latency buckets of an hour. */
export const addToHealth = statement<
  [orgId: number, collectionId: number, hour: Date, models: readonly string[], pinned: readonly string[], buckets: readonly number[]]
>(
  'collections.add_to_health',
  `insert into collection_health as h (org_id, collection_id, starts_at, model, pinned, bucket, checks, is_day)
   select $1::int, $2::int, $3::timestamptz, f.model, f.pinned, f.bucket, 1, false
   from unnest($4::text[], $5::text[], $6::int[]) as f (model, pinned, bucket)
   on conflict (collection_id, starts_at, model, pinned, bucket) do update set checks = h.checks + 1`,
)

/** Sums the hours before a midnight (UTC) into days. */
export const compactHours = statement<[before: Date]>(
  'collections.compact_hours',
  `with hours as (
     delete from collection_health where not is_day and starts_at < $1::timestamptz
     returning collection_id, org_id, starts_at, model, pinned, bucket, checks)
   insert into collection_health as h (org_id, collection_id, starts_at, model, pinned, bucket, checks, is_day)
   select o.org_id, o.collection_id, o.starts_at, o.model, o.pinned, o.bucket, sum(o.checks)::int, true
   from (select collection_id, org_id, date_trunc('day', starts_at, 'UTC') as starts_at, model, pinned, bucket, checks from hours) o
   group by o.org_id, o.collection_id, o.starts_at, o.model, o.pinned, o.bucket
   on conflict (collection_id, starts_at, model, pinned, bucket) do update set checks = h.checks + excluded.checks, is_day = true`,
)

export const deleteOldHealth = statement<[before: Date]>(
  'collections.delete_old_health',
  'delete from collection_health where is_day and starts_at < $1::timestamptz',
)

export const deleteOldChecks = statement<[before: Date]>('collections.delete_old_checks', 'delete from collection_checks where at < $1::timestamptz')

export const deleteOldCanaries = statement<[before: Date]>('collections.delete_old_canaries', 'delete from collection_canaries where at < $1::timestamptz')

/**
 * Adds to the count of a span that begins at `startsAt`. Returns no row and counts nothing when the sum would exceed `max`. A process whose clock
 * still shows the previous span counts in the newer span. A process whose clock differs more from the row, in either direction, begins a new count.
 */
export const takeUse = statement<[orgId: number, kind: string, startsAt: Date, spanS: number, count: bigint, max: bigint], { used: bigint }>(
  'collections.take_use',
  `insert into canary_use as u (org_id, kind, starts_at, used)
   select $1::int, $2::text, $3::timestamptz, $5::bigint where $5::bigint <= $6::bigint
   on conflict (org_id, kind) do update
   set starts_at = case when u.starts_at = excluded.starts_at + make_interval(secs => $4::int) then u.starts_at else excluded.starts_at end,
     used = excluded.used + case when u.starts_at in (excluded.starts_at, excluded.starts_at + make_interval(secs => $4::int)) then u.used else 0 end
   where excluded.used + case when u.starts_at in (excluded.starts_at, excluded.starts_at + make_interval(secs => $4::int)) then u.used else 0 end <= $6::bigint
   returning u.used as "used"`,
)
