/** One agent with the agents above it and its children. */
import type { BudgetStatus } from '../../gateway/limits/budgets/budgets.ts'
import type { Db } from '../../platform/db/db.ts'
import { inrFromUinr } from '../../platform/values/money.ts'
import type { AgentBudgets } from '../agent-budgets.ts'
import { type AgentView, statusOf } from '../agent-view.ts'
import { type AgentRow, findAgent, findAgents, findWithAncestors } from '../queries.ts'
import type { AgentViews } from './agent-views.ts'
import { activeChildren } from './list-queries.ts'

export interface FamilyDeps {
  readonly db: Db
  readonly budgets: Pick<AgentBudgets, 'list'>
  readonly views: AgentViews
}

/** A member of a family, without its rules. */
export interface FamilyMember {
  readonly id: number
  readonly name: string
  readonly status: AgentView['status']
  readonly monthly_budget_inr: number | null
  readonly spend_month_inr: number
  readonly held_inr: number
}

export interface AgentFamily extends AgentView {
  /** The agents above it, nearest first. */
  readonly parents: readonly FamilyMember[]
  /** Its active children, newest first, at most 100. */
  readonly children: readonly FamilyMember[]
  /** Number of requests of the agent and of the agents below it that run in this process. */
  readonly running_requests: number
}

/** Maximum number of children in a family. The list of agents has all of them. */
export const childrenShownMax = 100

/** Returns an agent with its family, or null. */
export async function familyOf({ db, budgets, views }: FamilyDeps, orgId: number, agentId: number): Promise<Omit<AgentFamily, 'running_requests'> | null> {
  const [row, above] = await Promise.all([db.maybe(findAgent, orgId, agentId), db.maybe(findWithAncestors, orgId, agentId)])
  if (row === null || above === null) return null
  const { ancestorIds } = above
  const [parents, children] = await Promise.all([
    ancestorIds.length === 0 ? [] : db.many(findAgents, orgId, ancestorIds),
    db.many(activeChildren, orgId, agentId, childrenShownMax),
  ])
  const statuses = await budgets.list(
    orgId,
    [row, ...parents, ...children].map(({ id }) => id),
  )
  const [view] = await views.many(orgId, [row], statuses)
  if (view === undefined) return null
  const nearestFirst = [...parents].sort((a, b) => ancestorIds.indexOf(a.id) - ancestorIds.indexOf(b.id))
  const memberOf = (each: Pick<AgentRow, 'id' | 'name' | 'status' | 'pauseSeq'>): FamilyMember => ({
    id: each.id,
    name: each.name,
    status: statusOf(each),
    ...moneyOf(statuses.get(each.id)),
  })
  return { ...view, parents: nearestFirst.map(memberOf), children: children.map(memberOf) }
}

function moneyOf(status: BudgetStatus | undefined): Pick<FamilyMember, 'monthly_budget_inr' | 'spend_month_inr' | 'held_inr'> {
  const capUinr = status?.capUinr ?? null
  return {
    monthly_budget_inr: capUinr === null ? null : inrFromUinr(capUinr),
    spend_month_inr: inrFromUinr(status?.spentUinr ?? 0n),
    held_inr: inrFromUinr(status?.heldUinr ?? 0n),
  }
}
