import { statement } from '../../platform/db/db.ts'
import { type AgentRow, agentColumns } from '../queries.ts'

export interface PlaygroundRow extends AgentRow {
  readonly playgroundKey: number
}

/** Returns the active playground agent of a person. */
export const findPlayground = statement<[orgId: number, userId: number], PlaygroundRow>(
  'agents.find_playground',
  `select ${agentColumns}, playground_key as "playgroundKey" from agents where org_id = $1::int and playground_user = $2::int and status = 'active'`,
)

/** Creates the playground agent of a person. Returns no row when an active agent has the name. */
export const insertPlayground = statement<[orgId: number, userId: number, keyId: number, name: string, createdAt: Date], AgentRow>(
  'agents.insert_playground',
  `insert into agents (org_id, name, created_by_user, playground_user, playground_key, created_at)
   values ($1::int, $4::text, $2::int, $2::int, $3::int, $5::timestamptz)
   on conflict (org_id, name) where status = 'active' do nothing returning ${agentColumns}`,
)

export const setPlaygroundKey = statement<[orgId: number, agentId: number, keyId: number]>(
  'agents.set_playground_key',
  `update agents set playground_key = $3::int where org_id = $1::int and id = $2::int`,
)
