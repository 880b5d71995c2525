import { statement } from '../../platform/db/db.ts'
import type { StoreDetails } from '../config/store-probe.ts'
import type { StoreAccess } from '../stores/s3/s3-options.ts'
import { historyBytesAfter, type KeptParameters, keptVersion, markedVersions, placedVersions } from './version-settling.ts'

export interface StoreRow {
  readonly orgId: number
  readonly store: 's3' | 'folder'
  readonly endpoint: string | null
  readonly bucket: string | null
  readonly region: string | null
  readonly sealedCredentials: string | null
  readonly accessKeyMasked: string | null
  readonly access: Partial<StoreAccess>
  readonly quotaMb: number
  readonly journalTtlDays: number
  readonly casPut: boolean
  readonly casDelete: boolean
  readonly clockSkewMs: bigint
  /** Number of versions of one key. 0 means no history. */
  readonly historyVersions: number
  readonly historyDays: number
  /** Details that the last probe found. The next field is the time of that probe. */
  readonly capabilities: Partial<StoreDetails>
  readonly probedAt: Date | null
  readonly reconciledAt: Date | null
  readonly generation: number
}

const storeColumns = `org_id as "orgId", store, endpoint, bucket, region, sealed_credentials as "sealedCredentials", access_key_masked as "accessKeyMasked", access,
  quota_mb as "quotaMb", journal_ttl_days as "journalTtlDays", cas_put as "casPut", cas_delete as "casDelete", clock_skew_ms as "clockSkewMs",
  history_versions as "historyVersions", history_days as "historyDays", capabilities, probed_at as "probedAt", reconciled_at as "reconciledAt", generation`

export const findStore = statement<[orgId: number], StoreRow>('memory.find_store', `select ${storeColumns} from memory_stores where org_id = $1::int`)

export const lockStore = statement<[orgId: number], StoreRow>(
  'memory.lock_store',
  `select ${storeColumns} from memory_stores where org_id = $1::int for update`,
)

export const listStores = statement<[limit: number], StoreRow>('memory.list_stores', `select ${storeColumns} from memory_stores order by org_id limit $1::int`)

export const saveStore = statement<
  [
    orgId: number,
    store: string,
    endpoint: string | null,
    bucket: string | null,
    region: string | null,
    sealed: string | null,
    masked: string | null,
    quotaMb: number,
    ttlDays: number,
    casPut: boolean,
    casDelete: boolean,
    skewMs: bigint,
    generation: number,
    historyVersions: number,
    historyDays: number,
    now: Date,
    access: string,
  ]
>(
  'memory.save_store',
  `insert into memory_stores (org_id, store, endpoint, bucket, region, sealed_credentials, access_key_masked, quota_mb, journal_ttl_days, cas_put, cas_delete, clock_skew_ms, generation, history_versions, history_days, configured_at, updated_at, access)
   values ($1::int, $2::text, $3::text, $4::text, $5::text, $6::text, $7::text, $8::int, $9::int, $10::boolean, $11::boolean, $12::bigint, $13::int, $14::int, $15::int, $16::timestamptz, $16::timestamptz, $17::text::jsonb)
   on conflict (org_id) do update set store = excluded.store, access = excluded.access, endpoint = excluded.endpoint, bucket = excluded.bucket, region = excluded.region,
     sealed_credentials = excluded.sealed_credentials, access_key_masked = excluded.access_key_masked, quota_mb = excluded.quota_mb, journal_ttl_days = excluded.journal_ttl_days,
     cas_put = excluded.cas_put, cas_delete = excluded.cas_delete, clock_skew_ms = excluded.clock_skew_ms, generation = excluded.generation,
     history_versions = excluded.history_versions, history_days = excluded.history_days, updated_at = excluded.updated_at,
     purge_due_at = case when memory_stores.journal_ttl_days = excluded.journal_ttl_days then memory_stores.purge_due_at else excluded.updated_at end`,
)

/** Returns the id by which roles know this organisation. The first call stores `made` as the id. */
export const externalIdOf = statement<[orgId: number, made: string], { externalId: string }>(
  'memory.external_id_of',
  `insert into memory_external_ids as e (org_id, external_id) values ($1::int, $2::text)
   on conflict (org_id) do update set external_id = e.external_id returning external_id as "externalId"`,
)

/** Records the result of a probe, unless the store was reconfigured meanwhile. The details are JSON text. */
export const saveCapabilities = statement<[orgId: number, generation: number, casPut: boolean, casDelete: boolean, skewMs: bigint, details: string, now: Date]>(
  'memory.save_capabilities',
  `update memory_stores set cas_put = $3::boolean, cas_delete = $4::boolean, clock_skew_ms = $5::bigint, capabilities = $6::jsonb, probed_at = $7::timestamptz
   where org_id = $1::int and generation = $2::int`,
)

export const saveQuota = statement<[orgId: number, quotaBytes: bigint]>(
  'memory.save_quota',
  `insert into memory_usage (org_id, quota_bytes) values ($1::int, $2::bigint)
   on conflict (org_id) do update set quota_bytes = excluded.quota_bytes`,
)

export interface UsageRow {
  readonly usedBytes: bigint
  readonly reservedBytes: bigint
  readonly objects: bigint
}

/** The room of an organisation in its store. */
export interface RoomRow {
  readonly usedBytes: bigint
  readonly quotaBytes: bigint
  readonly historyBytes: bigint
  readonly objects: bigint
}

/** Returns the room of the organisation, without running writes. It reads one row, because the console asks often. Decision 0584 says why. */
export const roomOf = statement<[orgId: number], RoomRow>(
  'memory.room_of',
  `select used_bytes as "usedBytes", quota_bytes as "quotaBytes", history_bytes as "historyBytes", objects from memory_usage where org_id = $1::int`,
)

/** Returns the used bytes of the organisation, without running writes. It reads one row, because every key may ask often. */
export const usedBytesOf = statement<[orgId: number], { usedBytes: bigint }>(
  'memory.used_bytes_of',
  `select coalesce((select used_bytes from memory_usage where org_id = $1::int), 0)::bigint as "usedBytes"`,
)

/** Returns the bytes and the number of objects of the organisation, including running writes. It counts the whole index. Only a change of the store needs it. */
export const usageOf = statement<[orgId: number], UsageRow>(
  'memory.usage_of',
  `select coalesce(u.used_bytes, 0) as "usedBytes", coalesce(u.reserved_bytes, 0) as "reservedBytes",
     (select count(*) from memory_objects o where o.org_id = $1::int) + (select count(*) from memory_intents i where i.org_id = $1::int and i.kind = 'put') as objects
   from (select $1::int as org_id) asked left join memory_usage u on u.org_id = asked.org_id`,
)

export const clearIntents = statement<[orgId: number]>('memory.clear_intents', `delete from memory_intents where org_id = $1::int`)
export const clearObjects = statement<[orgId: number]>('memory.clear_objects', `delete from memory_objects where org_id = $1::int`)

/** Adds the objects of one list page of the store to the index, unless the store was reconfigured meanwhile. */
export const insertListed = statement<
  [orgId: number, keys: readonly string[], etags: readonly string[], sizes: readonly bigint[], modified: readonly Date[], generation: number]
>(
  'memory.insert_listed',
  `insert into memory_objects (org_id, key, etag, size_bytes, written_at)
   select $1::int, listed.key, listed.etag, listed.size_bytes, listed.written_at
   from unnest($2::text[], $3::text[], $4::bigint[], $5::timestamptz[]) as listed (key, etag, size_bytes, written_at)
   where exists (select from memory_stores s where s.org_id = $1::int and s.generation = $6::int)
   on conflict (org_id, key) do nothing`,
)

/** Sets when the reconcile job examines a store, unless the store was reconfigured meanwhile. */
export const dueReconcile = statement<[orgId: number, generation: number, dueAt: Date]>(
  'memory.due_reconcile',
  `update memory_stores set reconcile_due_at = $3::timestamptz where org_id = $1::int and generation = $2::int`,
)

export const recountUsage = statement<[orgId: number]>(
  'memory.recount_usage',
  `update memory_usage set reserved_bytes = 0, history_bytes = (select coalesce(sum(size_bytes), 0)::bigint from memory_versions where org_id = $1::int and doomed_at is null),
     used_bytes = (select coalesce(sum(size_bytes), 0)::bigint from memory_objects where org_id = $1::int),
     objects = (select count(*) from memory_objects where org_id = $1::int)
   where org_id = $1::int`,
)

/** The state of the key at the beginning of a write. */
export interface TakenRow {
  readonly outcome: 'taken' | 'busy' | 'full' | 'moved'
  /** The etag of the object in the index. Null when the index has no object. */
  readonly etag: string | null
  readonly writeId: string | null
  readonly writtenAt: Date | null
  /** With `busy`, the time until which the other write has the key exclusively. */
  readonly busyUntil: Date | null
}

/** Takes a key for one write and reserves its bytes, in one round trip. The function is in the migrations. */
export const takeKey = statement<
  [
    orgId: number,
    key: string,
    kind: string,
    action: string,
    writeId: string,
    generation: number,
    sha256: string | null,
    size: bigint,
    userId: number | null,
    keyId: number | null,
    agentId: number | null,
    agentName: string | null,
    agentLabel: string | null,
    now: Date,
    expiresAt: Date,
  ],
  TakenRow
>(
  'memory.take_key',
  `select outcome, etag, write_id as "writeId", written_at as "writtenAt", busy_until as "busyUntil"
   from memory_take($1::int, $2::text, $3::text, $4::text, $5::uuid, $6::int, $7::text, $8::bigint, $9::int, $10::int, $11::int, $12::text, $13::text, $14::timestamptz, $15::timestamptz)`,
)

/**
 * A settlement commits without waiting for the disk of the database. If a crash loses the settlement, the intent is still there, because its commit waited
 * for the disk. The sweep then reads the store and resolves the intent.
 */
const unhurried = `unhurried as materialized (select set_config('synchronous_commit', 'off', true))`

/** Returns the CTE `news`, which comes after the CTE `gone`. It inserts the change that every process reads. */
function newsOfWrite(action: string, etag: string): string {
  return `news as (
     insert into memory_changes (org_id, key, action, etag, user_id, key_id, agent_id, agent_label)
     select org_id, key, ${action}, ${etag}, user_id, key_id, agent_id, agent_label from gone
   )`
}

/**
 * Settles a write that the store has done. The replaced object becomes a version. Returns no row when the intent is gone. The row says whether another
 * process waits for the key.
 */
export const settlePut = statement<[orgId: number, key: string, writeId: string, ...kept: KeptParameters, etag: string], { isWanted: boolean }>(
  'memory.settle_put',
  `with ${unhurried}, gone as (
     delete from memory_intents where org_id = $1::int and key = $2::text and write_id = $3::uuid and kind = 'put' returning *
   ), old as (
     select o.* from memory_objects o, gone where o.org_id = $1::int and o.key = $2::text
   ), ${keptVersion}, ${placedVersions('kept')}, placed as (
     insert into memory_objects (org_id, key, etag, sha256, size_bytes, how, user_id, key_id, agent_id, agent_name, agent_label, write_id, written_at)
     select org_id, key, $9::text, sha256, size_bytes, how, user_id, key_id, agent_id, agent_name, agent_label, write_id, started_at from gone
     on conflict (org_id, key) do update set etag = excluded.etag, sha256 = excluded.sha256, size_bytes = excluded.size_bytes, how = excluded.how,
       user_id = excluded.user_id, key_id = excluded.key_id, agent_id = excluded.agent_id, agent_name = excluded.agent_name,
       agent_label = excluded.agent_label, write_id = excluded.write_id, written_at = excluded.written_at
   ), ${newsOfWrite('how', '$9::text')}
   update memory_usage u set used_bytes = u.used_bytes + gone.size_bytes - coalesce((select size_bytes from old), 0),
     reserved_bytes = u.reserved_bytes - gone.delta_bytes, history_bytes = ${historyBytesAfter},
     objects = u.objects + (case when exists (select 1 from old) then 0 else 1 end)
   from gone, unhurried where u.org_id = $1::int
   returning gone.wanted as "isWanted"`,
)

/**
 * Settles a deletion that the store has done. The deleted object becomes a version, and a version that marks the deletion is added. The result is that of
 * `settlePut`.
 */
export const settleDelete = statement<[orgId: number, key: string, writeId: string, ...kept: KeptParameters], { isWanted: boolean }>(
  'memory.settle_delete',
  `with ${unhurried}, gone as (
     delete from memory_intents where org_id = $1::int and key = $2::text and write_id = $3::uuid and kind = 'delete' returning *
   ), old as (
     select o.* from memory_objects o, gone where o.org_id = $1::int and o.key = $2::text
   ), ${keptVersion}, ${markedVersions}, ${placedVersions('marked')}, removed as (
     delete from memory_objects o using gone where o.org_id = $1::int and o.key = $2::text returning o.size_bytes
   ), ${newsOfWrite("case how when 'put' then 'delete' else how end", 'null')}
   update memory_usage u set used_bytes = u.used_bytes - coalesce((select size_bytes from removed), 0), history_bytes = ${historyBytesAfter},
     objects = greatest(u.objects - (select count(*) from removed), 0)
   from gone, unhurried where u.org_id = $1::int
   returning gone.wanted as "isWanted"`,
)

/** Gives a key and its reservation back. The result is that of `settlePut`. */
export const releaseKey = statement<[orgId: number, key: string, writeId: string], { isWanted: boolean }>(
  'memory.release_key',
  `with ${unhurried}, gone as (
     delete from memory_intents where org_id = $1::int and key = $2::text and write_id = $3::uuid returning delta_bytes, wanted
   )
   update memory_usage u set reserved_bytes = u.reserved_bytes - gone.delta_bytes from gone, unhurried where u.org_id = $1::int
   returning gone.wanted as "isWanted"`,
)

/** Lets every process resolve the intent from now on. The owner of the intent does not know how its call to the store ended. */
export const doubtIntent = statement<[orgId: number, key: string, writeId: string, now: Date]>(
  'memory.doubt_intent',
  `update memory_intents set expires_at = $4::timestamptz where org_id = $1::int and key = $2::text and write_id = $3::uuid`,
)

export interface IntentRow {
  readonly orgId: number
  readonly key: string
  readonly kind: 'put' | 'delete'
  /** The kind of change for the change event of the write. */
  readonly how: string
  readonly writeId: string
  readonly expiresAt: Date
}

const intentColumns = `org_id as "orgId", key, kind, how, write_id as "writeId", expires_at as "expiresAt"`

export const findIntent = statement<[orgId: number, key: string], IntentRow>(
  'memory.find_intent',
  `select ${intentColumns} from memory_intents where org_id = $1::int and key = $2::text`,
)

/** Returns the id of the write that made the object of a key in the index. */
export const findWriteId = statement<[orgId: number, key: string], { writeId: string | null }>(
  'memory.find_write_id',
  `select write_id as "writeId" from memory_objects where org_id = $1::int and key = $2::text`,
)

/**
 * Returns expired intents of all organisations that are not in `except`. At most `perOrg` of them belong to one organisation, so that no organisation fills
 * a whole sweep.
 */
export const expiredIntents = statement<[now: Date, limit: number, perOrg: number, except: readonly number[]], IntentRow>(
  'memory.expired_intents',
  `select ${intentColumns} from (
     select *, row_number() over (partition by org_id order by expires_at) as place from memory_intents
     where expires_at <= $1::timestamptz and org_id <> all($4::int[])
   ) as expired where place <= $3::int order by expires_at limit $2::int`,
)

export interface ObjectRow {
  readonly key: string
  readonly etag: string
  readonly userId: number | null
  readonly keyId: number | null
  readonly agentId: number | null
  readonly agentName: string | null
  readonly agentLabel: string | null
  readonly writtenAt: Date
}

/** Returns the index rows of these keys. It does not read the range between them, because the index may have far more keys there than the store listed. */
export const objectsOf = statement<[orgId: number, keys: readonly string[]], ObjectRow>(
  'memory.objects_of',
  `select key, etag, user_id as "userId", key_id as "keyId", agent_id as "agentId", agent_name as "agentName", agent_label as "agentLabel",
     written_at as "writtenAt"
   from memory_objects where org_id = $1::int and key = any($2::text[])`,
)
