import { statement } from '../../../platform/db/db.ts'

/** A session as its person sees it. */
export interface ListedSession {
  readonly id: number
  readonly createdAt: Date
  readonly lastUsedAt: Date | null
  readonly expiresAt: Date
  readonly browser: string | null
  readonly orgId: number
  readonly orgName: string
  readonly isCurrent: boolean
}

/** Returns the newest sessions of a person in every organisation that have neither ended nor expired. */
export const listSessions = statement<[userId: number, currentHash: Buffer, now: Date, limit: number], ListedSession>(
  'access.list_sessions',
  `select s.id, s.created_at as "createdAt", s.last_used_at as "lastUsedAt", s.expires_at as "expiresAt", s.browser, s.org_id as "orgId", o.name as "orgName",
     s.id_hash = $2::bytea as "isCurrent"
   from sessions s join orgs o on o.id = s.org_id
   where s.user_id = $1::int and s.revoked_at is null and s.expires_at > $3::timestamptz
   order by s.id_hash = $2::bytea desc, s.created_at desc, s.id desc limit $4::int`,
)

/** Ends one session of a person. */
export const endOwnSession = statement<[userId: number, id: number, now: Date], { idHash: Buffer }>(
  'access.end_own_session',
  `update sessions set revoked_at = $3::timestamptz
   where user_id = $1::int and id = $2::int and revoked_at is null and expires_at > $3::timestamptz returning id_hash as "idHash"`,
)

/** Ends sessions of a person except one, at most `limit`. */
export const endOtherSessions = statement<[userId: number, keptHash: Buffer, now: Date, limit: number], { idHash: Buffer }>(
  'access.end_other_sessions',
  `update sessions set revoked_at = $3::timestamptz
   where id_hash in (
     select id_hash from sessions where user_id = $1::int and revoked_at is null and id_hash <> $2::bytea order by id_hash limit $4::int for no key update)
   returning id_hash as "idHash"`,
)
