import { statement } from '../../platform/db/db.ts'

export interface IndexedRow {
  readonly key: string
  readonly etag: string
  readonly sizeBytes: bigint
  readonly writeId: string | null
}

const indexedColumns = `key, etag, size_bytes as "sizeBytes", write_id as "writeId"`

/** Returns the index rows after `after` and up to `upTo`, in the order of the keys. A null `upTo` means up to the end. */
export const indexedAfter = statement<[orgId: number, after: string, upTo: string | null, limit: number], IndexedRow>(
  'memory.indexed_after',
  `select ${indexedColumns} from memory_objects
   where org_id = $1::int and key > $2::text and ($3::text is null or key <= $3::text) order by key limit $4::int`,
)

/** Counts the index rows of an organisation up to a maximum. */
export const countIndexed = statement<[orgId: number, most: number], { count: number }>(
  'memory.count_indexed',
  `select count(*)::int as count from (select 1 from memory_objects where org_id = $1::int limit $2::int) as indexed`,
)

export const indexedOf = statement<[orgId: number, keys: readonly string[]], IndexedRow>(
  'memory.indexed_of',
  `select ${indexedColumns} from memory_objects where org_id = $1::int and key = any($2::text[])`,
)

/**
 * Takes many keys in one statement, to compare them with the store. Keys of running writes are left out. When the store was reconfigured, all keys
 * are left out.
 */
export const takeKeys = statement<[orgId: number, keys: readonly string[], writeId: string, generation: number, now: Date, expiresAt: Date], { key: string }>(
  'memory.take_keys',
  `insert into memory_intents (org_id, key, kind, write_id, generation, started_at, expires_at)
   select $1::int, asked.key, 'put', $3::uuid, $4::int, $5::timestamptz, $6::timestamptz
   from unnest($2::text[]) as asked (key) join memory_stores s on s.org_id = $1::int and s.generation = $4::int
   order by asked.key for key share of s
   on conflict (org_id, key) do nothing
   returning key`,
)

/**
 * Corrects the index for keys that were taken with that write id, and gives all of them back. A null etag means that the object is gone. The author
 * in the index stays when the object still comes from the same write. Another etag of the same write changes the index, and is no news for listeners. At most
 * `newsMax` corrections become news. Returns the number of news.
 */
export const healKeys = statement<
  [
    orgId: number,
    writeId: string,
    keys: readonly string[],
    etags: readonly (string | null)[],
    sha256s: readonly (string | null)[],
    sizes: readonly bigint[],
    written: readonly Date[],
    writeIds: readonly (string | null)[],
    newsMax: number,
  ],
  { news: number }
>(
  'memory.heal_keys',
  `with gone as (
     delete from memory_intents where org_id = $1::int and write_id = $2::uuid returning key
   ), found as (
     select f.* from unnest($3::text[], $4::text[], $5::text[], $6::bigint[], $7::timestamptz[], $8::text[]) as f (key, etag, sha256, size_bytes, written_at, write_id)
     join gone on gone.key = f.key
   ), old as (
     select coalesce(sum(o.size_bytes), 0)::bigint as size_bytes, count(*) as objects from memory_objects o join found f on f.key = o.key where o.org_id = $1::int
   ), removed as (
     delete from memory_objects o using found f where o.org_id = $1::int and o.key = f.key and f.etag is null
   ), placed as (
     insert into memory_objects as o (org_id, key, etag, sha256, size_bytes, write_id, written_at)
     select $1::int, key, etag, sha256, size_bytes, write_id::uuid, written_at from found where etag is not null
     on conflict (org_id, key) do update set etag = excluded.etag, sha256 = excluded.sha256, size_bytes = excluded.size_bytes,
       write_id = excluded.write_id, written_at = excluded.written_at,
       user_id = case when o.write_id = excluded.write_id then o.user_id end, key_id = case when o.write_id = excluded.write_id then o.key_id end,
       agent_id = case when o.write_id = excluded.write_id then o.agent_id end, agent_name = case when o.write_id = excluded.write_id then o.agent_name end,
       agent_label = case when o.write_id = excluded.write_id then o.agent_label end
   ), news as (
     insert into memory_changes (org_id, key, action, etag)
     select $1::int, f.key, case when f.etag is null then 'delete' else 'put' end, f.etag
     from found f left join memory_objects o on o.org_id = $1::int and o.key = f.key
     where f.etag is null or o.write_id is null or f.write_id is null or o.write_id <> f.write_id::uuid or o.size_bytes <> f.size_bytes
     order by f.key limit $9::int
     returning 1
   )
   update memory_usage u set used_bytes = greatest(u.used_bytes - old.size_bytes + (select coalesce(sum(size_bytes), 0)::bigint from found where etag is not null), 0),
     objects = greatest(u.objects - old.objects + (select count(*) from found where etag is not null), 0)
   from old where u.org_id = $1::int
   returning (select count(*)::int from news) as news`,
)

/** Returns the names under .versions/ that belong to a version or a running write. */
export const knownVersions = statement<[orgId: number, names: readonly string[]], { name: string }>(
  'memory.known_versions',
  `select v.object_id::text as name from memory_versions v where v.org_id = $1::int and v.object_id::text = any($2::text[])
   union select i.write_id::text from memory_intents i where i.org_id = $1::int and i.write_id::text = any($2::text[])`,
)

/** Locks the usage until the end of the transaction, so that no write settles while bytes are counted. */
export const lockUsage = statement<[orgId: number], { orgId: number }>(
  'memory.lock_usage',
  `select org_id as "orgId" from memory_usage where org_id = $1::int for update`,
)

/** Sets the usage to the sum of the index and the running writes. The transaction must run `lockUsage` first. */
export const countUsage = statement<[orgId: number], { usedBytes: bigint }>(
  'memory.count_usage',
  `update memory_usage set used_bytes = (select coalesce(sum(size_bytes), 0)::bigint from memory_objects where org_id = $1::int),
     reserved_bytes = (select coalesce(sum(delta_bytes), 0)::bigint from memory_intents where org_id = $1::int),
     objects = (select count(*) from memory_objects where org_id = $1::int)
   where org_id = $1::int returning used_bytes as "usedBytes"`,
)

/** Ends a comparison. The next one is due at `dueAt` and starts from the first key. */
export const markReconciled = statement<[orgId: number, generation: number, now: Date, dueAt: Date]>(
  'memory.mark_reconciled',
  `update memory_stores set reconciled_at = $3::timestamptz, reconcile_due_at = $4::timestamptz, reconcile_generation = null
   where org_id = $1::int and generation = $2::int`,
)

/** The progress of a comparison. */
export interface ReconcilePlace {
  /** The key in the store that ended the last page. */
  readonly after: string
  /** Number of pages of the whole comparison so far. */
  readonly pages: number
  /** Number of objects that the whole comparison has added or changed so far. */
  readonly corrected: number
}

/**
 * Returns where the comparison of a store continues. Returns no row when the comparison starts from the first key, for example because the store was
 * reconfigured.
 */
export const findPlace = statement<[orgId: number], ReconcilePlace>(
  'memory.find_reconcile_place',
  `select reconcile_after as "after", reconcile_pages as "pages", reconcile_added as "corrected" from memory_stores
   where org_id = $1::int and reconcile_generation = generation and reconcile_after is not null`,
)

export const savePlace = statement<[orgId: number, generation: number, after: string, pages: number, corrected: number]>(
  'memory.save_reconcile_place',
  `update memory_stores set reconcile_generation = $2::int, reconcile_after = $3::text, reconcile_pages = $4::int, reconcile_added = $5::int
   where org_id = $1::int and generation = $2::int`,
)

/** Makes the next comparison start from the first key. */
export const clearPlace = statement<[orgId: number]>(
  'memory.clear_reconcile_place',
  `update memory_stores set reconcile_generation = null where org_id = $1::int`,
)

/** Claims stores of all organisations that are due to be compared. If the process dies, a claimed store is due again at `retryAt`. */
export const claimReconciles = statement<[now: Date, retryAt: Date, limit: number], { orgId: number }>(
  'memory.claim_reconciles',
  `update memory_stores set reconcile_due_at = $2::timestamptz
   where org_id in (select org_id from memory_stores where reconcile_due_at <= $1::timestamptz order by reconcile_due_at limit $3::int for update skip locked)
   returning org_id as "orgId"`,
)

/** Claims stores of all organisations whose journals are due to be checked. */
export const claimPurges = statement<[now: Date, nextAt: Date, limit: number], { orgId: number }>(
  'memory.claim_purges',
  `update memory_stores set purge_due_at = $2::timestamptz
   where org_id in (select org_id from memory_stores where purge_due_at <= $1::timestamptz order by purge_due_at limit $3::int for update skip locked)
   returning org_id as "orgId"`,
)

export const purgeSoon = statement<[orgId: number, dueAt: Date]>(
  'memory.purge_soon',
  `update memory_stores set purge_due_at = least(purge_due_at, $2::timestamptz) where org_id = $1::int`,
)

/** Returns journal entries that were written before a time, oldest first. */
export const oldJournal = statement<[orgId: number, before: Date, limit: number], { key: string }>(
  'memory.old_journal',
  `select key from memory_objects where org_id = $1::int and key ~ '^workspaces/[^/]+/journal/.' and written_at < $2::timestamptz
   order by written_at limit $3::int`,
)
