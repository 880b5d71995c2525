/** Which of these keys can still be used, with their names: for whoever keeps something by their ids. */
import type { Db } from '../../platform/db.ts'
import { activeKeyNames } from './active-names-queries.ts'

/** Names of those that are neither revoked nor expired and whose person is a member, by id. */
export async function namesOfActiveKeys(db: Db, orgId: number, keyIds: readonly number[], nowMs: number): Promise<ReadonlyMap<number, string>> {
  return new Map((await db.many(activeKeyNames, orgId, keyIds, new Date(nowMs))).map(row => [row.id, row.name]))
}
