import { statement } from '../../platform/db.ts'

/** A disabled key counts: it can be switched on again. */
export const activeKeyNames = statement<[orgId: number, keyIds: readonly number[], now: Date], { id: number; name: string }>(
  'keys.active_names',
  `select k.id, k.name from api_keys k
   left join org_members m on m.org_id = k.org_id and m.user_id = k.user_id and m.status = 'active'
   where k.org_id = $1::int and k.id = any($2::int[]) and k.revoked_at is null and (k.expires_at is null or k.expires_at > $3::timestamptz)
     and (k.user_id is null or m.user_id is not null)`,
)
