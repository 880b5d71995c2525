import type { Db } from '../../../platform/db/db.ts'
import { listToolOrgs } from './servers/tool-server-queries.ts'

/** Returns a page of the organisations that ever registered an MCP server, by id. */
export async function toolOrgs(db: Db, after: number, limit: number): Promise<readonly number[]> {
  return (await db.many(listToolOrgs, after, limit)).map(({ orgId }) => orgId)
}
