import { statement } from '../../../platform/db/db.ts'

/** A key about which the inactivity rule may have to decide: give notice, disable the key, or withdraw the notice. */
export interface InactivityRow {
  readonly id: number
  readonly orgId: number
}

/**
 * Returns enabled keys that have a notice, or that have been idle for as long as their organisation allows. The ids are above `aboveId`, in
 * ascending order.
 */
export const findIdle = statement<[aboveId: number, now: Date, limit: number], InactivityRow>(
  'keys.find_idle',
  `select k.id, k.org_id as "orgId" from api_keys k join orgs o on o.id = k.org_id
   where k.id > $1::int and k.enabled and k.revoked_at is null and (k.expires_at is null or k.expires_at > $2::timestamptz)
     and (k.inactivity_notice_at is not null or k.lifecycle_pin is null
       and greatest(k.created_at, k.last_used_at, k.idle_from) <= $2::timestamptz - make_interval(days => o.key_inactivity_days))
   order by k.id limit $3::int`,
)

/** Reads one key again and locks it. The decision about the key uses these values. */
export const lockIdle = statement<
  [orgId: number, keyId: number],
  {
    name: string
    prefix: string
    userId: number | null
    createdAt: Date
    lastUsedAt: Date | null
    idleFrom: Date | null
    noticeAt: Date | null
    pin: string | null
    orgName: string
    days: number | null
  }
>(
  'keys.lock_idle',
  `select k.name, k.prefix, k.user_id as "userId", k.created_at as "createdAt", k.last_used_at as "lastUsedAt", k.idle_from as "idleFrom",
     k.inactivity_notice_at as "noticeAt", k.lifecycle_pin as "pin", o.name as "orgName", o.key_inactivity_days as "days"
   from api_keys k join orgs o on o.id = k.org_id
   where k.org_id = $1::int and k.id = $2::int and k.enabled and k.revoked_at is null for no key update of k`,
)

/** Sets the time of the notice. Null withdraws the notice. */
export const setNotice = statement<[orgId: number, keyId: number, noticeAt: Date | null]>(
  'keys.set_notice',
  `update api_keys set inactivity_notice_at = $3::timestamptz where org_id = $1::int and id = $2::int`,
)

export const disableIdle = statement<[orgId: number, keyId: number]>(
  'keys.disable_idle',
  `update api_keys set enabled = false, disabled_reason = 'inactivity' where org_id = $1::int and id = $2::int`,
)

/** Returns who receives the notice: the key's user. When the key has no active user, every owner. */
export const noticeReaders = statement<[orgId: number, userId: number | null], { userId: number; email: string }>(
  'keys.notice_readers',
  `with own as materialized (
     select m.user_id from org_members m where m.org_id = $1::int and m.user_id = $2::int and m.status = 'active')
   select u.id as "userId", u.email from users u
   where u.id in (select user_id from own)
     or not exists (select 1 from own)
       and u.id in (select m.user_id from org_members m where m.org_id = $1::int and m.role = 'owner' and m.status = 'active')
   order by u.id`,
)
