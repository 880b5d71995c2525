import { statement } from '../../../platform/db/db.ts'

/** A stored reply. */
export interface CachedRow {
  readonly at: Date
  readonly valueUinr: bigint
  readonly residency: string
  readonly provider: string
  readonly sealed: string
}

/** Returns the reply while neither its own time nor the organisation's window is over. */
export const findReply = statement<[orgId: number, mac: Buffer, now: Date, oldest: Date], CachedRow>(
  'reply_cache.find',
  `select c.at, c.value_uinr as "valueUinr", c.residency, c.provider, c.sealed
   from reply_cache c join orgs o on o.id = c.org_id
   where c.org_id = $1::int and c.mac = $2::bytea and c.expires_at > $3::timestamptz and c.at > $4::timestamptz
     and c.at > $3::timestamptz - make_interval(days => o.retention_days)`,
)

/**
 * Inserts a reply while the window of its organisation is open, and deletes the oldest others that leave no room for it. The lock on the organisation's row
 * makes the insert wait for a change of the window that is in progress; the new window then decides.
 */
export const insertReply = statement<
  [
    orgId: number,
    mac: Buffer,
    at: Date,
    expiresAt: Date,
    bytes: number,
    valueUinr: bigint,
    residency: string,
    provider: string,
    sealed: string,
    bytesMost: number,
  ]
>(
  'reply_cache.insert',
  `with open_window as (
     select id from orgs where id = $1::int and retention_days > 0 for share
   ), older as (
     select mac, sum(bytes) over (order by at desc, mac) as total from reply_cache where org_id = $1::int and mac <> $2::bytea
   ), evicted as (
     delete from reply_cache c using older where c.org_id = $1::int and c.mac = older.mac and older.total > $10::int - $5::int
   )
   insert into reply_cache (org_id, mac, at, expires_at, bytes, value_uinr, residency, provider, sealed)
   select id, $2::bytea, $3::timestamptz, $4::timestamptz, $5::int, $6::bigint, $7::text, $8::text, $9::text from open_window
   on conflict (org_id, mac) do update set at = excluded.at, expires_at = excluded.expires_at, bytes = excluded.bytes,
     value_uinr = excluded.value_uinr, residency = excluded.residency, provider = excluded.provider, sealed = excluded.sealed`,
)

export const deleteRepliesBefore = statement<[orgId: number, before: Date, limit: number]>(
  'reply_cache.delete_before',
  `delete from reply_cache where org_id = $1::int and mac in
     (select mac from reply_cache where org_id = $1::int and at <= $2::timestamptz limit $3::int)`,
)

export const deleteExpiredReplies = statement<[now: Date, limit: number]>(
  'reply_cache.delete_expired',
  `delete from reply_cache where (org_id, mac) in
     (select org_id, mac from reply_cache where expires_at <= $1::timestamptz limit $2::int)`,
)
