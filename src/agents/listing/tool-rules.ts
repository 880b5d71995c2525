/** The rules that say which tools of MCP servers an agent may call. */
import type { Db } from '../../platform/db/db.ts'
import { findAgents, findWithAncestors } from '../queries.ts'

/** The rule of one agent of a family. */
export interface ToolRule {
  readonly agentId: number
  readonly name: string
  /** Patterns of tools. Null: the agent has no rule, so it may call none. */
  readonly allowedTools: readonly string[] | null
}

/** Returns the rule of an agent and those of all agents above it, nearest first. Null when the organisation has no such agent. */
export async function toolRulesOf(db: Db, orgId: number, agentId: number): Promise<readonly ToolRule[] | null> {
  const found = await db.maybe(findWithAncestors, orgId, agentId)
  if (found === null) return null
  const ids = [agentId, ...found.ancestorIds]
  const rows = new Map((await db.many(findAgents, orgId, ids)).map(row => [row.id, row]))
  return ids.flatMap(id => {
    const row = rows.get(id)
    return row === undefined ? [] : [{ agentId: id, name: row.name, allowedTools: row.allowedTools }]
  })
}
