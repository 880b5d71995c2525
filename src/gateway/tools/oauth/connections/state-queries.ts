import { statement } from '../../../../platform/db/db.ts'

/** A consent under way. */
export interface StateRow {
  readonly serverId: string
  readonly verifierSealed: string
  readonly issuer: string
  readonly resource: string
  readonly expiresAt: Date
}

export const insertState = statement<
  [orgId: number, hash: Buffer, serverId: string, userId: number, sessionId: string, verifier: string, issuer: string, resource: string, expiresAt: Date]
>(
  'tools.insert_oauth_state',
  `insert into tool_oauth_states (org_id, state_hash, server_id, user_id, session_id, verifier_sealed, issuer, resource, expires_at)
   values ($1::int, $2::bytea, $3::uuid, $4::int, $5::text, $6::text, $7::text, $8::text, $9::timestamptz)`,
)

/** Deletes and returns the consent of exactly this session, so that only one of two callbacks finds it, and the callback of anybody else changes nothing. */
export const takeState = statement<[orgId: number, hash: Buffer, userId: number, sessionId: string], StateRow>(
  'tools.take_oauth_state',
  `delete from tool_oauth_states where org_id = $1::int and state_hash = $2::bytea and user_id = $3::int and session_id = $4::text
   returning server_id as "serverId", verifier_sealed as "verifierSealed", issuer, resource, expires_at as "expiresAt"`,
)

/** Deletes the oldest consents under way of a person, so that with a new one there are at most `max`. */
export const deleteSurplusStates = statement<[orgId: number, userId: number, keep: number]>(
  'tools.delete_surplus_oauth_states',
  `delete from tool_oauth_states where org_id = $1::int and state_hash in (
     select state_hash from tool_oauth_states where org_id = $1::int and user_id = $2::int order by expires_at desc offset $3::int)`,
)

/** Says whether a person is a member now. The caller holds the lock of the organisation, so nobody leaves meanwhile. */
export const findActiveMember = statement<[orgId: number, userId: number], { role: string }>(
  'tools.find_active_member',
  `select role from org_members where org_id = $1::int and user_id = $2::int and status = 'active'`,
)

export const deleteOldStates = statement<[now: Date]>(
  'tools.delete_old_oauth_states',
  `delete from tool_oauth_states /* every org_id */ where expires_at < $1::timestamptz`,
)
