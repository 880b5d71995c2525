/** What the lists of agents take and give. */
import { z } from 'zod'
import { cursorCharsMax } from '../../platform/db/list-cursor.ts'
import { fail } from '../../platform/errors.ts'
import type { Principal } from '../../platform/security/principal.ts'
import { idIn, ownerOf, searchText, textOf } from '../../platform/values/list-params.ts'
import { agentView } from '../agent-shapes.ts'
import { childrenShownMax } from './agent-family.ts'
import type { AgentFilter } from './agent-list.ts'
import { agentSorts } from './list-cursor.ts'

export const pageMax = 200
export const pageDefault = 50

/** The query of a list of agents. */
export const listQuery = z.object({
  q: searchText('A part of the name, in upper or lower case, or an id.'),
  state: z.enum(['active', 'paused', 'revoked']).optional().describe('active leaves out paused agents.'),
  owner: z.string().optional().describe('The user id of the owner, or me.'),
  parent: z.string().optional().describe('The agent above, by id. none: agents without one.'),
  budget_used_percent: z.coerce
    .number()
    .int()
    .min(1)
    .max(100)
    .optional()
    .describe('Only agents that have spent at least this share of their monthly budget, most spend first. It goes with no other sort than spend.'),
  sort: z
    .enum(agentSorts)
    .optional()
    .describe('created (newest first, the default), name, last_call (latest first), or spend (most of this month first, revoked agents included).'),
  limit: z.coerce.number().int().min(1).max(pageMax).optional().describe(`Agents of one page, at most ${pageMax}. Left out by a key: the first 1,000 in one.`),
  cursor: z.string().max(cursorCharsMax).optional().describe('next_cursor of the page before, in the same order.'),
})

const member = z.object({
  id: z.int(),
  name: z.string(),
  status: z.enum(['active', 'paused', 'revoked']),
  monthly_budget_inr: z.number().nullable(),
  spend_month_inr: z.number(),
  held_inr: z.number(),
})

/** An agent with its family. */
export const familyView = agentView.extend({
  parents: z.array(member).describe('The agents above it, nearest first.'),
  children: z.array(member).describe(`Its active children, newest first, at most ${childrenShownMax}. The list with parent=<id> has all.`),
  running_requests: z.int().describe('Requests of the agent and of agents below it that run in the process that answers. Other processes may run more.'),
})

/** Returns the filter of a query. Throws `bad_request`. */
export function filterOf(query: z.output<typeof listQuery>, principal: Principal): AgentFilter {
  const { q, state, owner, parent, budget_used_percent: usedPercent, sort, cursor } = query
  if (usedPercent !== undefined && sort !== undefined && sort !== 'spend')
    throw fail('bad_request', { message: 'Field "sort": with budget_used_percent the order is spend. Leave sort out, or send sort=spend.' })
  return {
    text: textOf(q),
    state,
    ownerUser: ownerOf(owner, principal),
    parentId: parent === undefined || parent === 'none' ? parent : idIn(parent, 'parent', 'none'),
    usedPercent,
    sort,
    cursor,
  }
}
