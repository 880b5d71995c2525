/** Which of these workspaces and members are there now, with their names: for whoever keeps something by their ids. */
import type { Db } from '../../platform/db.ts'
import { activeMemberNames, workspaceNames } from './active-names-queries.ts'

/** Names by id, of archived ones too: they can still be charged. */
export async function namesOfWorkspaces(db: Db, orgId: number, ids: readonly number[]): Promise<ReadonlyMap<number, string>> {
  return new Map((await db.many(workspaceNames, orgId, ids)).map(row => [row.id, row.name]))
}

/** Names, or addresses where there is none, of those that are members now, by user id. */
export async function namesOfActiveMembers(db: Db, orgId: number, userIds: readonly number[]): Promise<ReadonlyMap<number, string>> {
  return new Map((await db.many(activeMemberNames, orgId, userIds)).map(row => [row.id, row.name]))
}
