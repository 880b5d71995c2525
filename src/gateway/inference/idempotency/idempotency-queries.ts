import { statement } from '../../../platform/db/db.ts'

/** Reserves a key. Returns the row when the key was free or expired, and nothing when it is taken. */
export const reserveKey = statement<
  [orgId: number, principal: string, keyHash: Buffer, bodyMac: Buffer, eventId: string | null, processId: bigint, at: Date, expiresAt: Date],
  { orgId: number }
>(
  'once.reserve',
  `insert into idempotency_keys as k (org_id, principal, key_hash, body_mac, state, event_id, process_id, reserved_at, expires_at)
   values ($1::int, $2::text, $3::bytea, $4::bytea, 'reserved', $5::uuid, $6::bigint, $7::timestamptz, $8::timestamptz)
   on conflict (org_id, principal, key_hash) do update
   set body_mac = excluded.body_mac, state = 'reserved', event_id = excluded.event_id, process_id = excluded.process_id, usage = null,
     reserved_at = excluded.reserved_at, expires_at = excluded.expires_at
   where k.expires_at <= excluded.reserved_at
   returning org_id as "orgId"`,
)

export interface KeyRow {
  readonly bodyMac: Buffer
  readonly state: 'reserved' | 'finished' | 'unknown'
  readonly usage: unknown
}

export const findKey = statement<[orgId: number, principal: string, keyHash: Buffer], KeyRow>(
  'once.find',
  `select body_mac as "bodyMac", state as "state", usage as "usage" from idempotency_keys
   where org_id = $1::int and principal = $2::text and key_hash = $3::bytea`,
)

/** Frees a key whose call had no effect. */
export const releaseKey = statement<[orgId: number, principal: string, keyHash: Buffer, reservedAt: Date]>(
  'once.release',
  `delete from idempotency_keys
   where org_id = $1::int and principal = $2::text and key_hash = $3::bytea and state = 'reserved' and reserved_at = $4::timestamptz`,
)

/** Ends a key whose call was charged in several events. */
export const finishKey = statement<[orgId: number, principal: string, keyHash: Buffer, reservedAt: Date, usage: string]>(
  'once.finish',
  `update idempotency_keys set state = 'finished', usage = $5::jsonb
   where org_id = $1::int and principal = $2::text and key_hash = $3::bytea and state = 'reserved' and reserved_at = $4::timestamptz`,
)

/** Ends the keys of events. Keys of events without cost are freed; the others record the usage. */
export const endKeysByEvent = statement<[eventIds: readonly string[], states: readonly string[], usages: readonly string[]], { count: bigint }>(
  'once.end_by_event',
  `with ended as (select * from unnest($1::uuid[], $2::text[], $3::text[]) as e (event_id, state, usage)),
     gone as (delete from idempotency_keys k using ended e where k.event_id = e.event_id and e.state = 'released' returning 1),
     kept as (update idempotency_keys k set state = e.state, usage = e.usage::jsonb from ended e
       where k.event_id = e.event_id and e.state <> 'released' returning 1)
   select (select count(*) from gone) + (select count(*) from kept) as "count"`,
)

/** Ends the reserved keys of a dead process. A call in one event never dialed, so its key is freed. A call in several events is in doubt. */
export const endKeysOfDead = statement<[processId: bigint], { count: bigint }>(
  'once.end_of_dead',
  `with gone as (delete from idempotency_keys where process_id = $1::bigint and state = 'reserved' and event_id is not null returning 1),
     doubted as (update idempotency_keys set state = 'unknown' where process_id = $1::bigint and state = 'reserved' and event_id is null returning 1)
   select (select count(*) from gone) + (select count(*) from doubted) as "count"`,
)

export const deleteExpiredKeys = statement<[now: Date]>('once.delete_expired', `delete from idempotency_keys where expires_at <= $1::timestamptz`)

/** Frees the reserved keys of a process that the operator gives up. */
export const freeKeysOf = statement<[processId: bigint]>('once.free_of', `delete from idempotency_keys where process_id = $1::bigint and state = 'reserved'`)

/** A call with an unknown end. */
export interface KeyInDoubt {
  readonly orgId: number
  /** The first 16 hex digits of the hash of the call's key. */
  readonly call: string
  /** `key:<id>` or `agent:<id>`. */
  readonly principal: string
  /** `unknown` means that the call was interrupted and charged as far as is known. `reserved` means that its process is silent or closed. */
  readonly state: string
  readonly processId: bigint
  readonly reservedAt: Date
  /** The known usage of the call. */
  readonly usage: unknown
}

// A key of a process that may still serve is not in doubt.
const isInDoubt = `(k.state = 'unknown' or k.state = 'reserved' and exists (
    select 1 from processes p join beats b on b.process_id = p.id
    where p.id = k.process_id and (p.state = 'closed' or b.beat_at < clock_timestamp() - $SILENT::bigint * interval '1 millisecond')))`

/** Lists the keys in doubt of all organisations, for the operator. */
export const listKeysInDoubt = statement<[silentMs: bigint, limit: number], KeyInDoubt>(
  'once.list_in_doubt',
  `select k.org_id as "orgId", left(encode(k.key_hash, 'hex'), 16) as "call", k.principal as "principal", k.state as "state",
     k.process_id as "processId", k.reserved_at as "reservedAt", k.usage as "usage"
   from idempotency_keys k where k.expires_at > clock_timestamp() and ${isInDoubt.replace('$SILENT', '$1')}
   order by k.reserved_at, k.org_id, k.key_hash limit $2::int`,
)

export const decideKey = statement<[orgId: number, call: string, isApplied: boolean, silentMs: bigint], { count: bigint }>(
  'once.decide',
  `with found as (select k.principal, k.key_hash from idempotency_keys k
       where k.org_id = $1::int and left(encode(k.key_hash, 'hex'), 16) = $2::text and ${isInDoubt.replace('$SILENT', '$4')}),
     applied as (update idempotency_keys k set state = 'finished' from found f
       where $3::bool and k.org_id = $1::int and k.principal = f.principal and k.key_hash = f.key_hash returning 1),
     gone as (delete from idempotency_keys k using found f
       where not $3::bool and k.org_id = $1::int and k.principal = f.principal and k.key_hash = f.key_hash returning 1)
   select (select count(*) from applied) + (select count(*) from gone) as "count"`,
)
