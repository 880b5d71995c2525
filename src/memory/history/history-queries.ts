import { statement } from '../../platform/db/db.ts'

/** How a version was made. */
export type VersionHow = 'put' | 'append' | 'restore' | 'promote' | 'delete'

export interface VersionRow {
  /** Orders the versions of one key. Null for the current object. */
  readonly seq: bigint | null
  /** Null for a current object that did not come through the gateway. */
  readonly versionId: string | null
  /** The name of the bytes under .versions/. Null for a deletion and for the current object. */
  readonly objectId: string | null
  readonly how: VersionHow
  readonly etag: string | null
  readonly sha256: string | null
  readonly sizeBytes: bigint
  readonly userId: number | null
  readonly keyId: number | null
  readonly agentId: number | null
  readonly agentName: string | null
  readonly agentLabel: string | null
  readonly writtenAt: Date
}

const authorColumns = `user_id as "userId", key_id as "keyId", agent_id as "agentId", agent_name as "agentName", agent_label as "agentLabel"`
const objectColumns = `null::bigint as seq, write_id as "versionId", null::uuid as "objectId", how, etag, sha256, size_bytes as "sizeBytes", ${authorColumns}, written_at as "writtenAt"`
const versionColumns = `seq, version_id as "versionId", object_id as "objectId", how, etag, sha256, size_bytes as "sizeBytes", ${authorColumns}, written_at as "writtenAt"`

/** Returns the present row of the index for a key. */
export const findCurrent = statement<[orgId: number, key: string], VersionRow>(
  'memory.find_current',
  `select ${objectColumns} from memory_objects where org_id = $1::int and key = $2::text`,
)

/** Returns versions of a key from before `before`, newest first. */
export const versionsBefore = statement<[orgId: number, key: string, before: bigint, limit: number], VersionRow>(
  'memory.versions_before',
  `select ${versionColumns} from memory_versions
   where org_id = $1::int and key = $2::text and doomed_at is null and seq < $3::bigint order by seq desc limit $4::int`,
)

/** Returns one version of a key. The current object counts as a version. */
export const findVersion = statement<[orgId: number, key: string, versionId: string], VersionRow>(
  'memory.find_version',
  `select ${versionColumns} from memory_versions where org_id = $1::int and key = $2::text and doomed_at is null and version_id = $3::uuid
   union all
   select ${objectColumns} from memory_objects where org_id = $1::int and key = $2::text and write_id = $3::uuid
   limit 1`,
)

/**
 * Marks versions of all organisations for removal: versions that are older than the retention of their store, versions of stores without history, and
 * versions of expired entries.
 */
export const doomOld = statement<[now: Date]>(
  'memory.doom_old_versions',
  `with due as (
     select v.org_id, v.key, v.seq from memory_versions v join memory_stores s on s.org_id = v.org_id
     where v.doomed_at is null and v.kept_at < $1::timestamptz - make_interval(days => (select min(history_days) from memory_stores))
       and v.kept_at < $1::timestamptz - make_interval(days => s.history_days)
     union
     select v.org_id, v.key, v.seq from memory_stores s join memory_versions v on v.org_id = s.org_id
     where s.history_versions = 0 and v.doomed_at is null
     union
     select v.org_id, v.key, v.seq from memory_versions v join memory_stores s on s.org_id = v.org_id
     where v.doomed_at is null and v.key ~ '^workspaces/[^/]+/journal/.'
       and v.written_at < $1::timestamptz - make_interval(days => (select min(journal_ttl_days) from memory_stores))
       and v.written_at < $1::timestamptz - make_interval(days => s.journal_ttl_days)
   ), doomed as (
     update memory_versions v set doomed_at = $1::timestamptz from due
     where v.org_id = due.org_id and v.key = due.key and v.seq = due.seq and v.doomed_at is null
     returning v.org_id, v.size_bytes
   ), freed as (
     select org_id, sum(size_bytes)::bigint as bytes from doomed group by org_id
   )
   update memory_usage u set history_bytes = greatest(u.history_bytes - freed.bytes, 0) from freed where u.org_id = freed.org_id`,
)

/** Marks the oldest versions of all organisations whose history is larger than their quota. */
export const doomOverQuota = statement<[now: Date]>(
  'memory.doom_versions_over_quota',
  `with ranked as (
     select v.org_id, v.key, v.seq, u.quota_bytes, sum(v.size_bytes) over (partition by v.org_id order by v.kept_at desc, v.seq desc) as total
     from memory_usage u join memory_versions v on v.org_id = u.org_id and v.doomed_at is null
     where u.history_bytes > u.quota_bytes
   ), doomed as (
     update memory_versions v set doomed_at = $1::timestamptz from ranked r
     where v.org_id = r.org_id and v.key = r.key and v.seq = r.seq and v.doomed_at is null and r.total > r.quota_bytes
     returning v.org_id, v.size_bytes
   ), freed as (
     select org_id, sum(size_bytes)::bigint as bytes from doomed group by org_id
   )
   update memory_usage u set history_bytes = greatest(u.history_bytes - freed.bytes, 0) from freed where u.org_id = freed.org_id`,
)

export interface DoomedRow {
  readonly orgId: number
  readonly key: string
  readonly seq: bigint
  readonly objectId: string | null
}

/**
 * Returns marked versions of all organisations that are not in `except`. At most `perOrg` of them belong to one organisation, so that no organisation fills
 * a whole sweep.
 */
export const doomedVersions = statement<[now: Date, limit: number, perOrg: number, except: readonly number[]], DoomedRow>(
  'memory.doomed_versions',
  `select org_id as "orgId", key, seq, object_id as "objectId" from (
     select *, row_number() over (partition by org_id order by doomed_at) as place from memory_versions
     where doomed_at is not null and doomed_at <= $1::timestamptz and org_id <> all($4::int[])
   ) as doomed where place <= $3::int order by doomed_at limit $2::int`,
)

export const doomedOfKey = statement<[orgId: number, key: string, limit: number], DoomedRow>(
  'memory.doomed_of_key',
  `select org_id as "orgId", key, seq, object_id as "objectId" from memory_versions
   where org_id = $1::int and key = $2::text and doomed_at is not null order by seq limit $3::int`,
)

export const removeDoomed = statement<[orgId: number, key: string, seq: bigint]>(
  'memory.remove_doomed',
  `delete from memory_versions where org_id = $1::int and key = $2::text and seq = $3::bigint and doomed_at is not null`,
)

/** Postpones a version whose bytes the store did not remove, so that other versions come first. */
export const postponeDoomed = statement<[orgId: number, key: string, seq: bigint, until: Date]>(
  'memory.postpone_doomed',
  `update memory_versions set doomed_at = $4::timestamptz where org_id = $1::int and key = $2::text and seq = $3::bigint and doomed_at is not null`,
)

/** Removes the version rows of an organisation that has changed to another store. The new store does not contain their bytes. */
export const clearVersions = statement<[orgId: number]>('memory.clear_versions', `delete from memory_versions where org_id = $1::int`)

/** Returns the number of bytes of old versions. The used bytes of an organisation do not include them. */
export const historyBytesOf = statement<[orgId: number], { bytes: bigint }>(
  'memory.history_bytes_of',
  `select history_bytes as bytes from memory_usage where org_id = $1::int`,
)
