import { statement } from '../../platform/db.ts'

export const activeWorkspaceNames = statement<[orgId: number, ids: readonly number[]], { id: number; name: string }>(
  'orgs.active_workspace_names',
  `select id, name from workspaces where org_id = $1::int and id = any($2::int[]) and archived_at is null`,
)

export const activeMemberNames = statement<[orgId: number, userIds: readonly number[]], { id: number; name: string }>(
  'orgs.active_member_names',
  `select m.user_id as id, coalesce(u.name, u.email) as name from org_members m join users u on u.id = m.user_id
   where m.org_id = $1::int and m.user_id = any($2::int[]) and m.status = 'active'`,
)
