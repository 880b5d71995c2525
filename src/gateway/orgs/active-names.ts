/** Names of workspaces and active members by id. Other domains that store such ids use them. */
import { type Db, type Queryable, statement } from '../../platform/db/db.ts'

/** Returns the names of these workspaces by id. Archived ones are included, because their keys can still cause charges. */
export async function namesOfWorkspaces(db: Db, orgId: number, ids: readonly number[]): Promise<ReadonlyMap<number, string>> {
  return new Map((await db.many(workspaceNames, orgId, ids)).map(row => [row.id, row.name]))
}

/** Returns, by user id, the names of those users that are active members. A user without a name has the mail address instead. */
export async function namesOfActiveMembers(db: Queryable, orgId: number, userIds: readonly number[]): Promise<ReadonlyMap<number, string>> {
  return new Map((await db.many(activeMemberNames, orgId, userIds)).map(row => [row.id, row.name]))
}

/** Archived workspaces are included, because their keys continue to work within the budget. */
const workspaceNames = statement<[orgId: number, ids: readonly number[]], { id: number; name: string }>(
  'orgs.workspace_names',
  `select id, name from workspaces where org_id = $1::int and id = any($2::int[])`,
)

const activeMemberNames = statement<[orgId: number, userIds: readonly number[]], { id: number; name: string }>(
  'orgs.active_member_names',
  `select m.user_id as id, coalesce(u.name, u.email) as name from org_members m join users u on u.id = m.user_id
   where m.org_id = $1::int and m.user_id = any($2::int[]) and m.status = 'active'`,
)
