import { statement } from '../../../platform/db/db.ts'
import type { Capability, Role } from '../../../platform/security/principal.ts'

export interface MembershipRow {
  readonly role: Role
  readonly capabilities: readonly Capability[]
}

export interface ListedMemberRow extends MembershipRow {
  readonly userId: number
  readonly email: string
  readonly name: string | null
}

export interface PendingRow {
  readonly id: number
  readonly email: string
  readonly role: Role
  readonly createdAt: Date
}

/** An invitation as the invited person sees it. */
export interface OwnInvitationRow extends PendingRow {
  readonly orgId: number
  readonly orgName: string
  readonly orgKind: 'personal' | 'team'
  readonly invitedBy: string
}

/**
 * Locks the organisation, so that changes of its people run one after the other. The lock is a weak one, so that calls whose rows refer to the
 * organisation do not wait.
 */
export const lockOrg = statement<[orgId: number], { name: string; kind: 'personal' | 'team' }>(
  'orgs.lock_org',
  `select name, kind from orgs where id = $1::int for no key update`,
)

export const findMembership = statement<[orgId: number, userId: number], MembershipRow>(
  'orgs.find_membership',
  `select role, capabilities from org_members where org_id = $1::int and user_id = $2::int and status = 'active'`,
)

export const findMember = statement<[orgId: number, userId: number], ListedMemberRow>(
  'orgs.find_member',
  `select m.user_id as "userId", u.email, u.name, m.role, m.capabilities
   from org_members m join users u on u.id = m.user_id
   where m.org_id = $1::int and m.user_id = $2::int and m.status = 'active'`,
)

export const countOwners = statement<[orgId: number], { owners: number }>(
  'orgs.count_owners',
  `select count(*)::int as owners from org_members where org_id = $1::int and status = 'active' and role = 'owner'`,
)

export const countPeople = statement<[orgId: number], { members: number; pending: number }>(
  'orgs.count_people',
  `select (select count(*) from org_members where org_id = $1::int and status = 'active')::int as members,
     (select count(*) from invitations where org_id = $1::int and status = 'pending')::int as pending`,
)

export const updateMember = statement<[orgId: number, userId: number, role: string | null, capabilities: readonly string[] | null]>(
  'orgs.update_member',
  `update org_members set role = coalesce($3::text, role), capabilities = coalesce($4::text[], capabilities)
   where org_id = $1::int and user_id = $2::int and status = 'active'`,
)

/** Ends a membership. The row stays, because keys and usage still refer to the person. */
export const endMembership = statement<[orgId: number, userId: number]>(
  'orgs.end_membership',
  `update org_members set status = 'removed', role = 'member', capabilities = '{}' where org_id = $1::int and user_id = $2::int and status = 'active'`,
)

export const leaveWorkspaces = statement<[orgId: number, userId: number]>(
  'orgs.leave_workspaces',
  `delete from workspace_members where org_id = $1::int and user_id = $2::int`,
)

/** Deletes the person's access to shares of memory. Shares that the person owns stay, because others work in them. */
export const leaveShares = statement<[orgId: number, userId: number]>(
  'orgs.leave_shares',
  `delete from memory_share_members where org_id = $1::int and user_id = $2::int`,
)

/** Deletes what sign-ins gave the person here because of groups. */
export const forgetGrants = statement<[orgId: number, userId: number]>(
  'orgs.forget_sign_in_grants',
  `delete from sign_in_grants where org_id = $1::int and user_id = $2::int`,
)

/** Revokes the person's keys. Rows are locked in the order of their ids, as in every statement that changes several keys. */
export const endKeys = statement<[orgId: number, userId: number, now: Date], { id: number; prefix: string; tier: string; scope: string }>(
  'orgs.end_keys',
  `with locked as materialized (
     select k.id from api_keys k where k.org_id = $1::int and k.user_id = $2::int and k.revoked_at is null order by k.id for no key update)
   update api_keys k set revoked_at = $3::timestamptz from locked where k.id = locked.id
   returning k.id, k.prefix, k.tier, k.scope`,
)

export const endSessions = statement<[orgId: number, userId: number, now: Date]>(
  'orgs.end_sessions',
  `update sessions set revoked_at = $3::timestamptz where org_id = $1::int and user_id = $2::int and revoked_at is null`,
)

export const joinOrg = statement<[orgId: number, userId: number, role: string, now: Date]>(
  'orgs.join',
  `insert into org_members (org_id, user_id, role, created_at) values ($1::int, $2::int, $3::text, $4::timestamptz)
   on conflict (org_id, user_id) do update set role = excluded.role, capabilities = '{}', status = 'active', created_at = excluded.created_at`,
)

export const findActiveByEmail = statement<[orgId: number, email: string], { userId: number }>(
  'orgs.find_active_by_email',
  `select m.user_id as "userId" from org_members m join users u on u.id = m.user_id
   where m.org_id = $1::int and m.status = 'active' and lower(u.email) = lower($2::text)`,
)

/** Returns open invitations, oldest first. The text is a part of the address, or an id. */
export const listPending = statement<[orgId: number, limit: number, text: string | null, role: Role | null], PendingRow>(
  'orgs.list_pending',
  `select id, email, role, created_at as "createdAt" from invitations
   where org_id = $1::int and status = 'pending' and ($4::text is null or role = $4::text)
     and ($3::text is null or strpos(lower(email), lower($3::text)) > 0 or id::text = $3::text)
   order by id limit $2::int`,
)

export const findPending = statement<[orgId: number, id: number], PendingRow>(
  'orgs.find_pending',
  `select id, email, role, created_at as "createdAt" from invitations where org_id = $1::int and id = $2::int and status = 'pending'`,
)

export const findPendingByEmail = statement<[orgId: number, email: string], { id: number }>(
  'orgs.find_pending_by_email',
  `select id from invitations where org_id = $1::int and status = 'pending' and lower(email) = lower($2::text)`,
)

export const insertInvitation = statement<[orgId: number, email: string, role: string, invitedBy: number, createdAt: Date], PendingRow>(
  'orgs.insert_invitation',
  `insert into invitations (org_id, email, role, invited_by, created_at)
   values ($1::int, $2::text, $3::text, $4::int, $5::timestamptz) returning id, email, role, created_at as "createdAt"`,
)

export const decideInvitation = statement<[orgId: number, id: number, status: string, now: Date], { id: number }>(
  'orgs.decide_invitation',
  `update invitations set status = $3::text, decided_at = $4::timestamptz
   where org_id = $1::int and id = $2::int and status = 'pending' returning id`,
)

/** Counts invitations in any state. */
export const countInvited = statement<[orgId: number, since: Date], { invited: number }>(
  'orgs.count_invited',
  `select count(*)::int as invited from invitations where org_id = $1::int and created_at > $2::timestamptz`,
)

/** Withdraws the open invitations with these roles that the person made. */
export const withdrawMadeBy = statement<[orgId: number, invitedBy: number, roles: readonly string[], now: Date]>(
  'orgs.withdraw_made_by',
  `update invitations set status = 'withdrawn', decided_at = $4::timestamptz
   where org_id = $1::int and invited_by = $2::int and status = 'pending' and role = any($3::text[])`,
)

const ownInvitation = `select i.id, i.email, i.role, i.created_at as "createdAt", i.org_id as "orgId", o.name as "orgName", o.kind as "orgKind",
     coalesce(b.name, b.email) as "invitedBy"
   from users u join invitations i on lower(i.email) = lower(u.email) and i.status = 'pending'
   join orgs o on o.id = i.org_id join users b on b.id = i.invited_by
   where u.id = $1::int`

/** Searches all organisations, because the address of the signed-in person decides which invitations are theirs. */
export const listOwnInvitations = statement<[userId: number, limit: number], OwnInvitationRow>(
  'orgs.list_own_invitations',
  `${ownInvitation} order by i.id limit $2::int`,
)

/** Searches all organisations, like `listOwnInvitations`. */
export const findOwnInvitation = statement<[userId: number, id: number], OwnInvitationRow>('orgs.find_own_invitation', `${ownInvitation} and i.id = $2::int`)
