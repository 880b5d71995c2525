/** The form in which clients see an agent. */
import type { BudgetStatus } from '../gateway/limits/budgets/budgets.ts'
import { inrFromUinr } from '../platform/values/money.ts'
import { rulesView } from './agent-rules.ts'
import { isPausedAt } from './pauses.ts'
import type { AgentRow, AgentStatus } from './queries.ts'

export interface AgentView extends ReturnType<typeof rulesView> {
  readonly id: number
  readonly name: string
  readonly status: AgentStatus | 'paused'
  /** The id of the agent that created this agent, or null. */
  readonly parent_id: number | null
  /** Number of agents above this agent in its family. */
  readonly depth: number
  readonly monthly_budget_inr: number | null
  readonly spend_month_inr: number
  readonly held_inr: number
  readonly in_doubt_inr: number
  readonly may_delegate: boolean
  /** Number of its active children. */
  readonly active_children: number
  /** The user id of the member who answers for the agent, or null. */
  readonly owner_uid: number | null
  /** Null when the owner is no member any more. */
  readonly owner_name: string | null
  readonly created_by: CreatedBy | null
  /** True for the playground agent of a person. */
  readonly playground: boolean
  readonly last_call_at: string | null
  readonly created_at: string
}

/** Who created an agent: a person by a session, a key, or the agent above it. The id is that of a user, a key or an agent. */
export interface CreatedBy {
  readonly kind: 'person' | 'key' | 'agent'
  readonly id: number
}

/** What a view shows in addition to the row. */
export interface ViewFacts {
  readonly budget: BudgetStatus | undefined
  readonly ownerName: string | null
  readonly activeChildren: number
}

/** One page of a list. */
export interface AgentPage {
  readonly agents: AgentView[]
  /** The cursor of the next page. Null on the last page. */
  readonly nextCursor: string | null
}

/** Returns the view of an agent. Without a status of its budget, the view shows no budget and no spending. */
export function viewOf(row: AgentRow, { budget, ownerName, activeChildren }: ViewFacts): AgentView {
  return {
    id: row.id,
    name: row.name,
    status: statusOf(row),
    parent_id: row.parentId,
    depth: row.depth,
    monthly_budget_inr: budget === undefined || budget.capUinr === null ? null : inrFromUinr(budget.capUinr),
    spend_month_inr: inrFromUinr(budget?.spentUinr ?? 0n),
    held_inr: inrFromUinr(budget?.heldUinr ?? 0n),
    in_doubt_inr: inrFromUinr(budget?.inDoubtUinr ?? 0n),
    may_delegate: row.mayDelegate,
    ...rulesView(row),
    active_children: activeChildren,
    owner_uid: row.ownerUser,
    owner_name: ownerName,
    created_by: createdByOf(row),
    playground: row.playgroundUser !== null,
    last_call_at: row.lastCallAt?.toISOString() ?? null,
    created_at: row.createdAt.toISOString(),
  }
}

/** Returns the status that clients see. */
export const statusOf = ({ status, pauseSeq }: Pick<AgentRow, 'status' | 'pauseSeq'>): AgentView['status'] =>
  status === 'active' && isPausedAt(pauseSeq) ? 'paused' : status

/** A child that has a key was created by the agent above it, which acts with a token of that key. A person's session has no key. */
function createdByOf({ parentId, createdByKey, createdByUser }: AgentRow): CreatedBy | null {
  if (createdByKey === null) return createdByUser === null ? null : { kind: 'person', id: createdByUser }
  return parentId === null ? { kind: 'key', id: createdByKey } : { kind: 'agent', id: parentId }
}
