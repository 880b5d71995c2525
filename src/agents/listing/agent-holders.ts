import { type Db, statement } from '../../platform/db/db.ts'

/** The organisation of an agent and the member who answers for it. */
export interface AgentHolder {
  readonly id: number
  readonly orgId: number
  readonly userId: number | null
}

const findHolders = statement<[ids: readonly number[]], AgentHolder>(
  'agents.find_holders',
  `select id, org_id as "orgId", coalesce(owner_user, created_by_user) as "userId" from agents where id = any($1::int[])`,
)

/** Returns the holders of agents in any organisation. Agents that do not exist are left out. The caller bounds the number of ids. */
export const holdersOfAgents = (db: Db, ids: readonly number[]): Promise<AgentHolder[]> => db.many(findHolders, ids)
