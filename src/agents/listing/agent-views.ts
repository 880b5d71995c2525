import type { BudgetStatus } from '../../gateway/limits/budgets/budgets.ts'
import { namesOfActiveMembers } from '../../gateway/orgs/active-names.ts'
import type { Db } from '../../platform/db/db.ts'
import type { AgentBudgets } from '../agent-budgets.ts'
import { type AgentView, viewOf } from '../agent-view.ts'
import type { AgentRow } from '../queries.ts'
import { childCounts } from './list-queries.ts'

export interface AgentViewsDeps {
  readonly db: Db
  readonly budgets: Pick<AgentBudgets, 'list'>
}

/** Makes the views of agents. Three statements serve any number of agents: their budgets, their owners and the numbers of their children. */
export class AgentViews {
  readonly #deps: AgentViewsDeps

  constructor(deps: AgentViewsDeps) {
    this.#deps = deps
  }

  async one(orgId: number, row: AgentRow): Promise<AgentView> {
    const [view] = await this.many(orgId, [row])
    if (view === undefined) throw new Error('an agent without a view')
    return view
  }

  /** Returns the views of these agents, in their order. */
  async many(orgId: number, rows: readonly AgentRow[], known?: ReadonlyMap<number, BudgetStatus>): Promise<AgentView[]> {
    if (rows.length === 0) return []
    const { db, budgets } = this.#deps
    const ids = rows.map(row => row.id)
    const owners = [...new Set(rows.flatMap(row => (row.ownerUser === null ? [] : [row.ownerUser])))]
    const [statuses, names, children] = await Promise.all([
      known ?? budgets.list(orgId, ids),
      owners.length === 0 ? new Map<number, string>() : namesOfActiveMembers(db, orgId, owners),
      db.many(childCounts, orgId, ids),
    ])
    const counts = new Map(children.map(({ id, count }) => [id, count]))
    return rows.map(row =>
      viewOf(row, {
        budget: statuses.get(row.id),
        ownerName: row.ownerUser === null ? null : (names.get(row.ownerUser) ?? null),
        activeChildren: counts.get(row.id) ?? 0,
      }),
    )
  }
}
