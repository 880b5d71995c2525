import { statement } from '../../platform/db.ts'

/** Archived ones too: the keys that are bound to them go on within their budget. */
export const workspaceNames = statement<[orgId: number, ids: readonly number[]], { id: number; name: string }>(
  'orgs.workspace_names',
  `select id, name from workspaces where org_id = $1::int and id = any($2::int[])`,
)

export const activeMemberNames = statement<[orgId: number, userIds: readonly number[]], { id: number; name: string }>(
  'orgs.active_member_names',
  `select m.user_id as id, coalesce(u.name, u.email) as name from org_members m join users u on u.id = m.user_id
   where m.org_id = $1::int and m.user_id = any($2::int[]) and m.status = 'active'`,
)
