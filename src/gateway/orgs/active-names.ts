/** Which of these workspaces and members are there now, with their names: for whoever keeps something by their ids. */
import { type Db, statement } from '../../platform/db/db.ts'

/** Names by id, of archived ones too: they can still be charged. */
export async function namesOfWorkspaces(db: Db, orgId: number, ids: readonly number[]): Promise<ReadonlyMap<number, string>> {
  return new Map((await db.many(workspaceNames, orgId, ids)).map(row => [row.id, row.name]))
}

/** Names, or addresses where there is none, of those that are members now, by user id. */
export async function namesOfActiveMembers(db: Db, orgId: number, userIds: readonly number[]): Promise<ReadonlyMap<number, string>> {
  return new Map((await db.many(activeMemberNames, orgId, userIds)).map(row => [row.id, row.name]))
}

/** Archived ones too: the keys that are bound to them go on within their budget. */
const workspaceNames = statement<[orgId: number, ids: readonly number[]], { id: number; name: string }>(
  'orgs.workspace_names',
  `select id, name from workspaces where org_id = $1::int and id = any($2::int[])`,
)

const activeMemberNames = statement<[orgId: number, userIds: readonly number[]], { id: number; name: string }>(
  'orgs.active_member_names',
  `select m.user_id as id, coalesce(u.name, u.email) as name from org_members m join users u on u.id = m.user_id
   where m.org_id = $1::int and m.user_id = any($2::int[]) and m.status = 'active'`,
)
