/** The form in which clients see an agent, and the cursors of lists of agents. */
import type { BudgetStatus } from '../gateway/limits/budgets/budgets.ts'
import { fail } from '../platform/errors.ts'
import { inrFromUinr } from '../platform/values/money.ts'
import { rowId } from '../platform/values/row-id.ts'
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
  readonly created_at: string
}

/** One page of a list. */
export interface AgentPage {
  readonly agents: AgentView[]
  /** The cursor of the next page. Null on the last page. */
  readonly nextCursor: string | null
}

/** Returns the view of an agent. Without a status of its budget, the view shows no budget and no spending. */
export function viewOf(row: AgentRow, budget: BudgetStatus | undefined): AgentView {
  return {
    id: row.id,
    name: row.name,
    status: row.status === 'active' && isPausedAt(row.pauseSeq) ? 'paused' : row.status,
    parent_id: row.parentId,
    depth: row.depth,
    monthly_budget_inr: budget === undefined || budget.capUinr === null ? null : inrFromUinr(budget.capUinr),
    spend_month_inr: inrFromUinr(budget?.spentUinr ?? 0n),
    held_inr: inrFromUinr(budget?.heldUinr ?? 0n),
    in_doubt_inr: inrFromUinr(budget?.inDoubtUinr ?? 0n),
    may_delegate: row.mayDelegate,
    ...rulesView(row),
    created_at: row.createdAt.toISOString(),
  }
}

/** Returns the cursor of the page after this agent. */
export const cursorBehind = ({ status, id }: AgentRow): string => `${status[0]}${id}`

/** Returns the status and id of the agent after which a page begins. Throws `bad_request` for an invalid cursor. */
export function cursorOf(text: string): { status: AgentStatus; id: number } {
  const id = rowId(text.slice(1))
  if (id === null || !/^[ar]/.test(text)) throw fail('bad_request', { message: 'cursor must be the next_cursor of the page before.' })
  return { status: text.startsWith('a') ? 'active' : 'revoked', id }
}
