import { statement } from '../../platform/db/db.ts'
import type { Capability, Role } from '../../platform/security/principal.ts'
import { founderSql } from '../orgs/founders.ts'

export interface SessionRow {
  readonly userId: number
  readonly orgId: number
  /** A text for the founder of the organisation. */
  readonly founder: string
  readonly email: string
  /** Role of the person's active membership in that organisation. Null without an active membership. */
  readonly role: Role | null
  readonly capabilities: readonly Capability[] | null
  readonly expiresAt: Date
  readonly lastUsedAt: Date | null
  /** True when the sign-in of the session proved the address of the person. */
  readonly isAddressProven: boolean
}

/** Stores a session. It proves the address of the person when `provenEmail` is that address. Only ASCII letters have two forms (`comparedEmail`). */
export const insertSession = statement<
  [idHash: Buffer, userId: number, orgId: number, createdAt: Date, expiresAt: Date, browser: string | null, provenEmail: string | null]
>(
  'access.insert_session',
  `insert into sessions (id_hash, user_id, org_id, created_at, last_used_at, expires_at, browser, address_proven)
   values ($1::bytea, $2::int, $3::int, $4::timestamptz, $4::timestamptz, $5::timestamptz, $6::text,
     exists (select 1 from users u where u.id = $2::int and lower(u.email collate "C") = lower($7::text collate "C")))`,
)

/** Finds a session in any organisation, because the hash of the cookie determines the organisation. */
export const findSession = statement<[idHash: Buffer], SessionRow>(
  'access.find_session',
  `select s.user_id as "userId", s.org_id as "orgId", ${founderSql('s.org_id')} as "founder", u.email, m.role, m.capabilities, s.expires_at as "expiresAt",
     s.last_used_at as "lastUsedAt", s.address_proven as "isAddressProven"
   from sessions s join users u on u.id = s.user_id
   left join org_members m on m.org_id = s.org_id and m.user_id = s.user_id and m.status = 'active'
   where s.id_hash = $1::bytea and s.revoked_at is null`,
)

/** Writes the time of the last use of a session. */
export const noteUse = statement<[idHash: Buffer, now: Date]>(
  'access.note_use_of_session',
  `update sessions set last_used_at = $2::timestamptz where id_hash = $1::bytea and revoked_at is null`,
)

export const revokeSession = statement<[idHash: Buffer, now: Date], { userId: number }>(
  'access.revoke_session',
  `update sessions set revoked_at = $2::timestamptz where id_hash = $1::bytea and revoked_at is null returning user_id as "userId"`,
)

/** Moves a session only to an organisation in which the person is an active member. */
export const moveSession = statement<[orgId: number, idHash: Buffer], { userId: number }>(
  'access.move_session',
  `update sessions s set org_id = $1::int
   where s.id_hash = $2::bytea and s.revoked_at is null
     and exists (select 1 from org_members m where m.org_id = $1::int and m.user_id = s.user_id and m.status = 'active')
   returning s.user_id as "userId"`,
)

export const deleteOldSessions = statement<[before: Date]>('access.delete_old_sessions', `delete from sessions where expires_at < $1::timestamptz`)
