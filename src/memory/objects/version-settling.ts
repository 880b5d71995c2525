/** The part of the settling statements that records the replaced object. It is SQL text that writes and deletions share. */
import type { Kept } from './version-keeper.ts'

/**
 * Parameters $4 to $8 of a settling statement: what was kept, then etag, size and time of bytes from outside the gateway, then the number of versions
 * of a key.
 */
export type KeptParameters = [kept: Kept['kind'], outsideEtag: string | null, outsideSize: bigint | null, outsideWritten: Date | null, versionsMax: number]

/** Returns `kept` as parameters. */
export function keptParameters(kept: Kept, versionsMax: number): KeptParameters {
  return kept.kind === 'outside' ? [kept.kind, kept.etag, BigInt(kept.sizeBytes), kept.writtenAt, versionsMax] : [kept.kind, null, null, null, versionsMax]
}

/** The CTE `kept`: the version that the write replaced. It reads the CTEs `gone` (the intent) and `old` (the index row). */
export const keptVersion = `kept as (
     select g.org_id, g.key, 1 as place, case when $4::text = 'known' then coalesce(o.write_id, g.write_id) else g.write_id end as version_id,
       g.write_id as object_id, coalesce(o.how, 'put') as how, coalesce($5::text, o.etag) as etag, o.sha256,
       coalesce($6::bigint, o.size_bytes, 0) as size_bytes, o.user_id, o.key_id, o.agent_id, o.agent_name, o.agent_label,
       coalesce($7::timestamptz, o.written_at, g.started_at) as written_at, g.started_at as kept_at
     from gone g left join old o on $4::text = 'known'
     where $4::text <> 'none'
   )`

/** The CTE `marked`: the rows of the CTE `kept`, and a version that marks the deletion. */
export const markedVersions = `marked as (
     select * from kept union all
     select org_id, key, 2, write_id, null, 'delete', null, null, 0, user_id, key_id, agent_id, agent_name, agent_label, started_at, started_at
     from gone where $8::int > 0 and ($4::text <> 'none' or exists (select 1 from old))
   )`

/**
 * This condition means "is null". The planner has no good statistics of a table that is new or grows fast. With "is null" it would use the index over all
 * kept versions of the organisation, not the index of the key.
 */
const isKept = (column: string): string => `coalesce(${column}, 'infinity'::timestamptz) = 'infinity'::timestamptz`

/**
 * Returns the CTEs `versions` and `doomed`. They insert the rows of `kept` or `marked`, and mark the oldest versions of the key for removal when it
 * has too many.
 */
export function placedVersions(from: 'kept' | 'marked'): string {
  return `versions as (
     insert into memory_versions (org_id, key, version_id, object_id, how, etag, sha256, size_bytes, user_id, key_id, agent_id, agent_name, agent_label, written_at, kept_at)
     select org_id, key, version_id, object_id, how, etag, sha256, size_bytes, user_id, key_id, agent_id, agent_name, agent_label, written_at, kept_at
     from ${from} order by place
     returning size_bytes
   ), doomed as (
     update memory_versions v set doomed_at = g.started_at from gone g
     where v.org_id = $1::int and v.key = $2::text and ${isKept('v.doomed_at')} and v.seq <= (
       select seq from memory_versions where org_id = $1::int and key = $2::text and ${isKept('doomed_at')}
       order by seq desc offset greatest($8::int - (select count(*) from ${from})::int, 0) limit 1)
     returning v.size_bytes
   )`
}

/** The new value of `memory_usage.history_bytes`. */
export const historyBytesAfter = `greatest(u.history_bytes + coalesce((select sum(size_bytes) from versions), 0)::bigint - coalesce((select sum(size_bytes) from doomed), 0)::bigint, 0)`
