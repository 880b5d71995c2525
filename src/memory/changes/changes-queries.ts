import { statement } from '../../platform/db/db.ts'

export interface ChangeRow {
  /** Time of the database, in every row. Without a change, the result is one row with only this time. */
  readonly now: Date
  readonly seq: bigint | null
  readonly at: Date
  readonly orgId: number
  readonly key: string
  readonly action: string
  readonly etag: string | null
  readonly userId: number | null
  readonly keyId: number | null
  readonly agentId: number | null
  readonly agentLabel: string | null
}

/** Returns the changes of objects of these organisations. The range begins `overlapMs` before the last read. The result has at least one row. */
export const readChanges = statement<[orgIds: readonly number[], since: Date | null, overlapMs: number, afterSeq: bigint | null, limit: number], ChangeRow>(
  'memory.read_changes',
  `select clock_timestamp() as "now", c.seq, c.at, c.org_id as "orgId", c.key, c.action, c.etag, c.user_id as "userId", c.key_id as "keyId",
     c.agent_id as "agentId", c.agent_label as "agentLabel"
   from (select 1) as one
   left join memory_changes c on c.org_id = any($1::int[]) and c.at > coalesce($2::timestamptz, clock_timestamp()) - make_interval(secs => $3::int / 1000.0)
     and ($4::bigint is null or c.seq > $4::bigint)
   order by c.seq limit $5::int`,
)

export const deleteOldChanges = statement<[]>('memory.delete_old_changes', `delete from memory_changes where at < clock_timestamp() - interval '1 hour'`)
