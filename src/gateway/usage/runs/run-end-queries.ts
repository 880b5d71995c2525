/** Statements about the ends of runs. */
import { statement } from '../../../platform/db/db.ts'

/** Returns the runs that ended last, the latest first. */
export const findRunEnds = statement<[limit: number], { orgId: number; ownerKind: string; ownerId: number; runId: string }>(
  'usage.find_run_ends',
  `select org_id as "orgId", owner_kind as "ownerKind", owner_id as "ownerId", run_id as "runId" from run_ends order by ended_at desc limit $1::int`,
)

/** Returns how many runs of an organisation have ended, at most `limit`. */
export const countRunEnds = statement<[orgId: number, limit: number], { count: number }>(
  'usage.count_run_ends',
  `select count(*)::int as "count" from (select 1 from run_ends where org_id = $1::int limit $2::int) e`,
)

/** Ends a run. A run that has ended stays as it is. */
export const insertRunEnd = statement<
  [orgId: number, ownerKind: string, ownerId: number, runId: string, at: Date, byUser: number | null, byKey: number | null]
>(
  'usage.insert_run_end',
  `insert into run_ends (org_id, owner_kind, owner_id, run_id, ended_at, ended_by_user, ended_by_key)
   values ($1::int, $2::text, $3::int, $4::text, $5::timestamptz, $6::int, $7::int) on conflict (org_id, owner_kind, owner_id, run_id) do nothing`,
)

export interface RunEndRow {
  readonly endedAt: Date
  readonly byUser: number | null
  readonly byKey: number | null
}

export const findRunEnd = statement<[orgId: number, ownerKind: string, ownerId: number, runId: string], RunEndRow>(
  'usage.find_run_end',
  `select ended_at as "endedAt", ended_by_user as "byUser", ended_by_key as "byKey" from run_ends
   where org_id = $1::int and owner_kind = $2::text and owner_id = $3::int and run_id = $4::text`,
)

/** Forgets the ends of runs before a time, at most `limit`. */
export const deleteOldRunEnds = statement<[before: Date, limit: number]>(
  'usage.delete_old_run_ends',
  `delete from run_ends where ctid = any(array(select ctid from run_ends where ended_at < $1::timestamptz order by ended_at limit $2::int))`,
)
