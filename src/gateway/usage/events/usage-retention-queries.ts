/** Statements that delete old usage events. */
import { statement } from '../../../platform/db/db.ts'

/** Returns the names of the monthly partitions. The default partition is not among them, because its name has another form. */
export const listPartitions = statement<[], { name: string }>(
  'usage.list_partitions',
  `select c.relname as "name" from pg_inherits i join pg_class c on c.oid = i.inhrelid
   where i.inhparent = 'usage_events'::regclass and c.relname ~ '^usage_events_[0-9]{4}_[0-9]{2}$' order by 1`,
)

/**
 * Records the first day from which all events are kept. The day is recorded before anything is deleted, and it never moves back. The statement waits
 * while the sums of a day are computed again (`rollup-rebuild.ts`).
 */
export const keepFrom = statement<[day: string]>(
  'usage.keep_from',
  `insert into usage_retention as r (kept_from) select $1::date from (select pg_advisory_xact_lock_shared(3, 20)) as gate on conflict (single) do update set kept_from = excluded.kept_from
   where r.kept_from < excluded.kept_from`,
)

/** Returns the first IST day whose events are all kept. Null when no event was ever deleted. */
export const findKeptFrom = statement<[], { keptFrom: string | null }>('usage.find_kept_from', 'select max(kept_from) as "keptFrom" from usage_retention')

/** Deletes the oldest events before a day, at most `limit`. The primary keys come from the index in order. */
export const deleteOldEvents = statement<[before: string, limit: number]>(
  'usage.delete_old_events',
  `with old as materialized (select day, id from usage_events where day < $1::date order by day, id limit $2::int)
   delete from usage_events e using old where e.day = old.day and e.id = old.id and e.day < $1::date`,
)

/** Deletes the oldest sums by hour before a day, at most `limit` of each table. The sums by day stay. */
export const deleteOldHourSums = [
  statement<[before: string, limit: number]>(
    'usage.delete_old_caller_hours',
    `delete from usage_hours_by_caller where ctid = any(array(select ctid from usage_hours_by_caller where day < $1::date order by day limit $2::int))`,
  ),
  statement<[before: string, limit: number]>(
    'usage.delete_old_hour_latencies',
    `delete from usage_hour_latencies where ctid = any(array(select ctid from usage_hour_latencies where day < $1::date order by day limit $2::int))`,
  ),
] as const

/**
 * Returns the statements that drop a partition of `listPartitions`. While they wait for their lock, every flush waits too. They therefore give up
 * after 2 seconds, and the next run tries again.
 */
export function dropPartitionSql(name: string): string {
  return `begin; set local lock_timeout = '2s'; drop table if exists ${name}; commit;`
}
