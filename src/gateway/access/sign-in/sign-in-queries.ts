import { statement } from '../../../platform/db/db.ts'

export const insertState = statement<[stateHash: Buffer, provider: string, sealed: string, expiresAt: Date]>(
  'access.insert_state',
  `insert into sign_in_states (state_hash, provider, sealed, expires_at) values ($1::bytea, $2::text, $3::text, $4::timestamptz)`,
)

/** Deletes and returns a started sign-in, so that only one of two callbacks with the same state finds it. */
export const takeState = statement<[stateHash: Buffer], { provider: string; sealed: string; expiresAt: Date }>(
  'access.take_state',
  `delete from sign_in_states where state_hash = $1::bytea returning provider, sealed, expires_at as "expiresAt"`,
)

export const deleteOldStates = statement<[now: Date]>('access.delete_old_states', `delete from sign_in_states where expires_at < $1::timestamptz`)

export const insertLink = statement<[tokenHash: Buffer, userId: number, expiresAt: Date]>(
  'access.insert_link',
  `insert into sign_in_links (token_hash, user_id, expires_at) values ($1::bytea, $2::int, $3::timestamptz)`,
)

export const findLink = statement<[tokenHash: Buffer, now: Date], { email: string }>(
  'access.find_link',
  `select u.email from sign_in_links l join users u on u.id = l.user_id where l.token_hash = $1::bytea and l.expires_at > $2::timestamptz`,
)

/** Deletes the link and returns its person, because a link signs in once. */
export const takeLink = statement<[tokenHash: Buffer, now: Date], { userId: number; email: string }>(
  'access.take_link',
  `delete from sign_in_links l using users u where u.id = l.user_id and l.token_hash = $1::bytea and l.expires_at > $2::timestamptz
   returning u.id as "userId", u.email as "email"`,
)

export const deleteOldLinks = statement<[now: Date]>('access.delete_old_links', `delete from sign_in_links where expires_at < $1::timestamptz`)

export const insertCode = statement<[codeHash: Buffer, orgId: number, userId: number, challenge: string, expiresAt: Date]>(
  'access.insert_cli_code',
  `insert into cli_codes (code_hash, org_id, user_id, challenge, expires_at) values ($1::bytea, $2::int, $3::int, $4::text, $5::timestamptz)`,
)

/** Deletes and returns the code, because a code can be tried once. The code is found in any organisation, because the code determines the organisation. */
export const takeCode = statement<[codeHash: Buffer, now: Date], { orgId: number; userId: number; challenge: string }>(
  'access.take_cli_code',
  `delete from cli_codes /* every org_id */ where code_hash = $1::bytea and expires_at > $2::timestamptz
   returning org_id as "orgId", user_id as "userId", challenge`,
)

export const deleteOldCodes = statement<[now: Date]>(
  'access.delete_old_cli_codes',
  `delete from cli_codes /* every org_id */ where expires_at < $1::timestamptz`,
)

/**
 * Returns the organisation of the person's latest session if the person is still a member there. Otherwise returns the organisation that the person
 * joined first.
 */
export const startingOrg = statement<[userId: number], { orgId: number }>(
  'access.starting_org',
  `select m.org_id as "orgId" from org_members m
   left join lateral (select max(s.created_at) as at from sessions s where s.user_id = m.user_id and s.org_id = m.org_id) as used on true
   where m.user_id = $1::int and m.status = 'active'
   order by used.at desc nulls last, m.created_at, m.org_id limit 1`,
)
