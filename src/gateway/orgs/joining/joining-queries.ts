import { statement } from '../../../platform/db/db.ts'
import type { Role } from '../../../platform/security/principal.ts'

/** A role that a sign-in can give. Nobody becomes an owner by signing in. */
export type GivenRole = 'member' | 'admin'

/** What the people of one group get. */
export interface GroupRule {
  readonly group: string
  readonly role: GivenRole | null
  readonly workspaceIds: readonly number[]
}

export interface RulesRow {
  readonly issuer: string
  readonly defaultRole: GivenRole
  readonly groups: readonly GroupRule[]
}

/** What a person has only because of groups. */
export interface GrantRow {
  readonly role: GivenRole | null
  readonly workspaceIds: readonly number[]
}

const rulesColumns = `issuer, default_role as "defaultRole", groups`

export const listRules = statement<[orgId: number], RulesRow>(
  'orgs.list_sign_in_rules',
  `select ${rulesColumns} from sign_in_rules where org_id = $1::int order by issuer`,
)

export const findRules = statement<[orgId: number, issuer: string], RulesRow>(
  'orgs.find_sign_in_rules',
  `select ${rulesColumns} from sign_in_rules where org_id = $1::int and issuer = $2::text`,
)

export const putRules = statement<[orgId: number, issuer: string, defaultRole: string, groups: string, now: Date]>(
  'orgs.put_sign_in_rules',
  `insert into sign_in_rules (org_id, issuer, default_role, groups, changed_at) values ($1::int, $2::text, $3::text, $4::jsonb, $5::timestamptz)
   on conflict (org_id, issuer) do update set default_role = excluded.default_role, groups = excluded.groups, changed_at = excluded.changed_at`,
)

/** Returns those of the given ids that are active workspaces, in their order. */
export const activeWorkspacesAmong = statement<[orgId: number, ids: readonly number[]], { id: number }>(
  'orgs.active_workspaces_among',
  `select id from workspaces where org_id = $1::int and id = any($2::int[]) and archived_at is null order by id`,
)

/** Returns the organisations in which sign-ins at the issuer gave the person something. */
export const listGrantOrgs = statement<[userId: number, issuer: string], { orgId: number }>(
  'orgs.list_sign_in_grant_orgs',
  `select org_id as "orgId" from sign_in_grants where user_id = $1::int and issuer = $2::text order by org_id`,
)

export const findGrant = statement<[orgId: number, userId: number, issuer: string], GrantRow>(
  'orgs.find_sign_in_grant',
  `select role, workspace_ids as "workspaceIds" from sign_in_grants where org_id = $1::int and user_id = $2::int and issuer = $3::text`,
)

export const putGrant = statement<[orgId: number, userId: number, issuer: string, role: string | null, workspaceIds: readonly number[], now: Date]>(
  'orgs.put_sign_in_grant',
  `insert into sign_in_grants (org_id, user_id, issuer, role, workspace_ids, changed_at)
   values ($1::int, $2::int, $3::text, $4::text, $5::int[], $6::timestamptz)
   on conflict (user_id, issuer, org_id) do update set role = excluded.role, workspace_ids = excluded.workspace_ids, changed_at = excluded.changed_at`,
)

export const dropGrant = statement<[orgId: number, userId: number, issuer: string]>(
  'orgs.drop_sign_in_grant',
  `delete from sign_in_grants where org_id = $1::int and user_id = $2::int and issuer = $3::text`,
)

/** Returns the membership in any state. */
export const findAnyMembership = statement<[orgId: number, userId: number], { role: Role; isActive: boolean }>(
  'orgs.find_any_membership',
  `select role, status = 'active' as "isActive" from org_members where org_id = $1::int and user_id = $2::int`,
)

/** Returns the workspaces of the person among the given ones. */
export const workspacesOfMember = statement<[orgId: number, userId: number, ids: readonly number[]], { id: number }>(
  'orgs.workspaces_of_member',
  `select workspace_id as id from workspace_members where org_id = $1::int and user_id = $2::int and workspace_id = any($3::int[]) order by workspace_id`,
)

export const enterWorkspaces = statement<[orgId: number, userId: number, ids: readonly number[], now: Date]>(
  'orgs.enter_workspaces',
  `insert into workspace_members (org_id, workspace_id, user_id, created_at)
   select $1::int, w.id, $2::int, $4::timestamptz from unnest($3::int[]) as w(id) on conflict (workspace_id, user_id) do nothing`,
)

export const quitWorkspaces = statement<[orgId: number, userId: number, ids: readonly number[]]>(
  'orgs.quit_workspaces',
  `delete from workspace_members where org_id = $1::int and user_id = $2::int and workspace_id = any($3::int[])`,
)

export const joinBySignIn = statement<[orgId: number, userId: number, role: string, now: Date]>(
  'orgs.join_by_sign_in',
  `insert into org_members (org_id, user_id, role, created_at) values ($1::int, $2::int, $3::text, $4::timestamptz)`,
)

/** Returns the open invitation of an address. */
export const findInvitationTo = statement<[orgId: number, email: string], { id: number; role: Role }>(
  'orgs.find_invitation_to',
  `select id, role from invitations where org_id = $1::int and status = 'pending' and lower(email) = lower($2::text)`,
)
