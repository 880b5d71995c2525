import { statement } from '../platform/db.ts'

export interface StoreRow {
  readonly orgId: number
  readonly store: 's3' | 'folder'
  readonly endpoint: string | null
  readonly bucket: string | null
  readonly region: string | null
  readonly sealedCredentials: string | null
  readonly accessKeyMasked: string | null
  readonly quotaMb: number
  readonly journalTtlDays: number
  readonly casPut: boolean
  readonly casDelete: boolean
  readonly clockSkewMs: bigint
  readonly generation: number
}

const storeColumns = `org_id as "orgId", store, endpoint, bucket, region, sealed_credentials as "sealedCredentials", access_key_masked as "accessKeyMasked",
  quota_mb as "quotaMb", journal_ttl_days as "journalTtlDays", cas_put as "casPut", cas_delete as "casDelete", clock_skew_ms as "clockSkewMs", generation`

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
    now: Date,
  ]
>(
  'memory.save_store',
  `insert into memory_stores (org_id, store, endpoint, bucket, region, sealed_credentials, access_key_masked, quota_mb, journal_ttl_days, cas_put, cas_delete, clock_skew_ms, generation, configured_at, updated_at)
   values ($1::int, $2::text, $3::text, $4::text, $5::text, $6::text, $7::text, $8::int, $9::int, $10::boolean, $11::boolean, $12::bigint, $13::int, $14::timestamptz, $14::timestamptz)
   on conflict (org_id) do update set store = excluded.store, endpoint = excluded.endpoint, bucket = excluded.bucket, region = excluded.region,
     sealed_credentials = excluded.sealed_credentials, access_key_masked = excluded.access_key_masked, quota_mb = excluded.quota_mb, journal_ttl_days = excluded.journal_ttl_days,
     cas_put = excluded.cas_put, cas_delete = excluded.cas_delete, clock_skew_ms = excluded.clock_skew_ms, generation = excluded.generation, updated_at = excluded.updated_at`,
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

/** What the organisation holds, running writes included. */
export const usageOf = statement<[orgId: number], UsageRow>(
  'memory.usage_of',
  `select coalesce(u.used_bytes, 0) as "usedBytes", coalesce(u.reserved_bytes, 0) as "reservedBytes",
     (select count(*) from memory_objects o where o.org_id = $1::int) + (select count(*) from memory_intents i where i.org_id = $1::int and i.kind = 'put') as objects
   from (select $1::int as org_id) asked left join memory_usage u on u.org_id = asked.org_id`,
)

export const clearIntents = statement<[orgId: number]>('memory.clear_intents', `delete from memory_intents where org_id = $1::int`)
export const clearObjects = statement<[orgId: number]>('memory.clear_objects', `delete from memory_objects where org_id = $1::int`)

export const insertListed = statement<[orgId: number, keys: readonly string[], etags: readonly string[], sizes: readonly bigint[], modified: readonly Date[]]>(
  'memory.insert_listed',
  `insert into memory_objects (org_id, key, etag, size_bytes, written_at)
   select $1::int, listed.key, listed.etag, listed.size_bytes, listed.written_at
   from unnest($2::text[], $3::text[], $4::bigint[], $5::timestamptz[]) as listed (key, etag, size_bytes, written_at)
   on conflict (org_id, key) do nothing`,
)

export const recountUsage = statement<[orgId: number]>(
  'memory.recount_usage',
  `update memory_usage set reserved_bytes = 0,
     used_bytes = (select coalesce(sum(size_bytes), 0)::bigint from memory_objects where org_id = $1::int)
   where org_id = $1::int`,
)

/** Takes a key for one write: one row, or none when another write has it or the store was configured anew meanwhile. */
export const takeKey = statement<
  [
    orgId: number,
    key: string,
    kind: string,
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
  ]
>(
  'memory.take_key',
  `insert into memory_intents (org_id, key, kind, write_id, generation, sha256, size_bytes, user_id, key_id, agent_id, agent_name, agent_label, started_at, expires_at)
   select $1::int, $2::text, $3::text, $4::uuid, $5::int, $6::text, $7::bigint, $8::int, $9::int, $10::int, $11::text, $12::text, $13::timestamptz, $14::timestamptz
   from memory_stores s where s.org_id = $1::int and s.generation = $5::int
   on conflict (org_id, key) do nothing`,
)

/** A statement of its own after take_key: its snapshot then sees what the writer before committed. No row: the quota has no room. */
export const reserveBytes = statement<[orgId: number, key: string, writeId: string], { deltaBytes: bigint }>(
  'memory.reserve_bytes',
  `with wanted as (
     select greatest(i.size_bytes - coalesce(o.size_bytes, 0), 0) as delta
     from memory_intents i left join memory_objects o on o.org_id = i.org_id and o.key = i.key
     where i.org_id = $1::int and i.key = $2::text and i.write_id = $3::uuid
   ), reserved as (
     update memory_usage u set reserved_bytes = u.reserved_bytes + wanted.delta from wanted
     where u.org_id = $1::int and (wanted.delta = 0 or u.used_bytes + u.reserved_bytes + wanted.delta <= u.quota_bytes)
     returning wanted.delta
   )
   update memory_intents i set delta_bytes = reserved.delta from reserved
   where i.org_id = $1::int and i.key = $2::text and i.write_id = $3::uuid
   returning i.delta_bytes as "deltaBytes"`,
)

/** Settles a write that is in the store. Touches nothing when the intent is gone; counts 1 when it settled. */
export const settlePut = statement<[orgId: number, key: string, writeId: string, etag: string]>(
  'memory.settle_put',
  `with gone as (
     delete from memory_intents where org_id = $1::int and key = $2::text and write_id = $3::uuid and kind = 'put' returning *
   ), old as (
     select o.size_bytes from memory_objects o, gone where o.org_id = $1::int and o.key = $2::text
   ), placed as (
     insert into memory_objects (org_id, key, etag, sha256, size_bytes, user_id, key_id, agent_id, agent_name, agent_label, write_id, written_at)
     select org_id, key, $4::text, sha256, size_bytes, user_id, key_id, agent_id, agent_name, agent_label, write_id, started_at from gone
     on conflict (org_id, key) do update set etag = excluded.etag, sha256 = excluded.sha256, size_bytes = excluded.size_bytes, user_id = excluded.user_id,
       key_id = excluded.key_id, agent_id = excluded.agent_id, agent_name = excluded.agent_name, agent_label = excluded.agent_label,
       write_id = excluded.write_id, written_at = excluded.written_at
   )
   update memory_usage u set used_bytes = u.used_bytes + gone.size_bytes - coalesce((select size_bytes from old), 0),
     reserved_bytes = u.reserved_bytes - gone.delta_bytes
   from gone where u.org_id = $1::int`,
)

/** Settles a deletion that happened in the store. Counts 1 when it settled. */
export const settleDelete = statement<[orgId: number, key: string, writeId: string]>(
  'memory.settle_delete',
  `with gone as (
     delete from memory_intents where org_id = $1::int and key = $2::text and write_id = $3::uuid and kind = 'delete' returning delta_bytes
   ), removed as (
     delete from memory_objects o using gone where o.org_id = $1::int and o.key = $2::text returning o.size_bytes
   )
   update memory_usage u set used_bytes = u.used_bytes - coalesce((select size_bytes from removed), 0)
   from gone where u.org_id = $1::int`,
)

/** Gives a key and its reservation back. Counts 1 when the intent was still there. */
export const releaseKey = statement<[orgId: number, key: string, writeId: string]>(
  'memory.release_key',
  `with gone as (
     delete from memory_intents where org_id = $1::int and key = $2::text and write_id = $3::uuid returning delta_bytes
   )
   update memory_usage u set reserved_bytes = u.reserved_bytes - gone.delta_bytes from gone where u.org_id = $1::int`,
)

/** Lets anyone resolve it from now on: its owner does not know how its call ended. */
export const doubtIntent = statement<[orgId: number, key: string, writeId: string, now: Date]>(
  'memory.doubt_intent',
  `update memory_intents set expires_at = $4::timestamptz where org_id = $1::int and key = $2::text and write_id = $3::uuid`,
)

export interface IntentRow {
  readonly orgId: number
  readonly key: string
  readonly kind: 'put' | 'delete'
  readonly writeId: string
  readonly expiresAt: Date
}

const intentColumns = `org_id as "orgId", key, kind, write_id as "writeId", expires_at as "expiresAt"`

export const findIntent = statement<[orgId: number, key: string], IntentRow>(
  'memory.find_intent',
  `select ${intentColumns} from memory_intents where org_id = $1::int and key = $2::text`,
)

/** System-wide: the sweep serves every organisation. */
export const expiredIntents = statement<[now: Date, limit: number], IntentRow>(
  'memory.expired_intents',
  `select ${intentColumns} from memory_intents where expires_at <= $1::timestamptz order by expires_at limit $2::int`,
)

export interface ObjectRow {
  readonly key: string
  readonly etag: string
  readonly userId: number | null
  readonly keyId: number | null
  readonly agentId: number | null
  readonly agentLabel: string | null
  readonly writtenAt: Date
}

/** Index rows from `first` to `last`, both included. */
export const objectsBetween = statement<[orgId: number, first: string, last: string], ObjectRow>(
  'memory.objects_between',
  `select key, etag, user_id as "userId", key_id as "keyId", agent_id as "agentId", agent_label as "agentLabel", written_at as "writtenAt"
   from memory_objects where org_id = $1::int and key >= $2::text and key <= $3::text order by key`,
)
