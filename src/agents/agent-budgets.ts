/** Monthly budgets of agents. Decision 0191 says why a child may get only a part of its parent's budget. */
import { type BudgetChange, type BudgetStatus, type Budgets, capChanged } from '../gateway/limits/budgets/budgets.ts'
import type { Tx } from '../platform/db/db.ts'
import type { ControlLog, NewsItem } from '../platform/db/db-control-log.ts'
import { fail, type GatewayError } from '../platform/errors.ts'
import { inrFromUinr } from '../platform/values/money.ts'
import { type Actor, adminSetAfter, checkActing, checkLoosening, isAdmin } from './authority.ts'
import { activeChildIds } from './children/child-queries.ts'
import { type AgentRow, findAgent, lockAgents, setAdminSet } from './queries.ts'
import { noAgent } from './tokens/token-refusal.ts'

/** The methods that this file needs from the limits. The budget of an agent works like every other budget. */
export type BudgetBook = Pick<Budgets, 'list' | 'holdIn' | 'sumIn' | 'setIn' | 'topAgents'>

export interface AgentBudgetsDeps {
  readonly controlLog: ControlLog
  readonly budgets: BudgetBook
}

type Member = Pick<AgentRow, 'id' | 'parentId'>

/**
 * Sets the budgets of agents. The caps of an agent's active children add up to at most the agent's own cap. A child gets at most what its parent has
 * left in the running month. The calls of a child count in its parent's budget too. A child's budget is therefore a limit inside the parent's budget,
 * and no money is set aside. A change of a budget locks the rows of parent and agent, so changes in one family happen one after the other.
 */
export class AgentBudgets {
  readonly #deps: AgentBudgetsDeps

  constructor(deps: AgentBudgetsDeps) {
    this.#deps = deps
  }

  /** Returns the budgets of these agents with their spending, by agent id. */
  async list(orgId: number, agentIds: readonly number[]): Promise<ReadonlyMap<number, BudgetStatus>> {
    const found = await this.#deps.budgets.list(orgId, agentIds.map(refOf))
    return new Map(found.map(status => [Number(status.id), status]))
  }

  /**
   * Sets the monthly cap. Null removes the cap. Throws `not_found`, `agent_revoked` (409) and `budget_not_available`. Throws `forbidden` for an actor
   * who may not loosen the cap.
   */
  set(orgId: number, agentId: number, capUinr: bigint | null, by: Actor, options: Omit<BudgetChange, 'period'> = {}): Promise<AgentRow> {
    return this.#deps.controlLog.change(async tx => {
      const found = await tx.maybe(findAgent, orgId, agentId)
      if (found === null) throw noAgent()
      const locked = await tx.many(lockAgents, orgId, found.parentId === null ? [agentId] : [found.parentId, agentId])
      const agent = locked.find(row => row.id === agentId)
      if (agent === undefined) throw noAgent()
      checkActing(by, agent)
      if (agent.status === 'revoked') throw fail('agent_revoked')
      if (isMore(capUinr, await this.capIn(tx, orgId, agentId))) checkLoosening(by, agent, ['budget'])
      const news = await this.setIn(tx, orgId, agent, capUinr, options)
      if (isAdmin(by)) await tx.exec(setAdminSet, orgId, agentId, adminSetAfter(by, agent, { budget: capUinr !== null }))
      return { value: agent, news }
    })
  }

  /**
   * Returns the monthly cap of an agent inside the caller's transaction. Returns null when the agent has no cap. The cap cannot change until the
   * transaction ends.
   */
  async capIn(tx: Tx, orgId: number, agentId: number): Promise<bigint | null> {
    const [own] = await this.#deps.budgets.holdIn(tx, orgId, [refOf(agentId)])
    return own?.capUinr ?? null
  }

  /**
   * Does the same as `set`, inside the transaction of the caller. The caller locks the rows of parent and agent and notifies other processes. Throws
   * `budget_not_available`.
   */
  async setIn(tx: Tx, orgId: number, agent: Member, capUinr: bigint | null, options: Omit<BudgetChange, 'period'> = {}): Promise<NewsItem[]> {
    const ids = agent.parentId === null ? [agent.id] : [agent.id, agent.parentId]
    const [own, parent] = await this.#deps.budgets.holdIn(tx, orgId, ids.map(refOf))
    if (own === undefined) throw new Error('an agent without a budget status')
    if (parent !== undefined) await this.#checkParent(tx, orgId, agent, own, parent, capUinr)
    if (capUinr !== null) await this.#checkChildren(tx, orgId, agent, capUinr)
    if (capUinr === null && own.capUinr === null) return []
    await this.#deps.budgets.setIn(tx, orgId, 'agent', String(agent.id), capUinr, options)
    return [{ kind: capChanged, ref: `${orgId}:agent:${agent.id}` }]
  }

  /**
   * Throws `budget_not_available` when the cap does not fit into the parent's budget. Every cap fits when the parent has no budget. A cap at or below
   * the present one always fits.
   */
  async #checkParent(tx: Tx, orgId: number, agent: Member, own: BudgetStatus, parent: BudgetStatus, capUinr: bigint | null): Promise<void> {
    if (parent.capUinr === null) return
    if (capUinr !== null && own.capUinr !== null && capUinr <= own.capUinr) return
    const given = await this.#givenIn(tx, orgId, Number(parent.id), agent.id)
    const leftUinr = remaining(parent.capUinr, parent)
    // What the parent has left already excludes the child's own spending. The child's new cap covers that spending, so it is added back.
    const most = least(parent.capUinr - given, leftUinr + usedUinr(own))
    if (capUinr !== null && capUinr <= most) return
    throw notAvailable(parent, { capUinr: parent.capUinr, givenUinr: given, leftUinr, mostUinr: most }, capUinr)
  }

  async #checkChildren(tx: Tx, orgId: number, agent: Member, capUinr: bigint): Promise<void> {
    const given = await this.#givenIn(tx, orgId, agent.id, null)
    if (given <= capUinr) return
    throw fail('budget_not_available', {
      message: `The active children of this agent have budgets of ₹${inrFromUinr(given)} a month together, so its own cannot be less. Lower theirs first, or revoke some.`,
      extra: { scope: 'agent', children_cap_inr: inrFromUinr(given), least_inr: inrFromUinr(given) },
    })
  }

  /** Returns the sum of the caps of an agent's active children, without the child `butId`. */
  async #givenIn(tx: Tx, orgId: number, agentId: number, butId: number | null): Promise<bigint> {
    const children = await tx.many(activeChildIds, orgId, agentId)
    const ids = children.flatMap(({ id }) => (id === butId ? [] : [String(id)]))
    return this.#deps.budgets.sumIn(tx, orgId, 'agent', ids)
  }
}

/** Returns whether a cap allows more than the cap before it. Null means that there is no cap. */
export const isMore = (capUinr: bigint | null, before: bigint | null): boolean => before !== null && (capUinr === null || capUinr > before)
const refOf = (id: number) => ({ scope: 'agent' as const, scopeId: String(id) })
const least = (a: bigint, b: bigint): bigint => (a < b ? a : b)
const usedUinr = ({ spentUinr, heldUinr, inDoubtUinr }: BudgetStatus): bigint => spentUinr + heldUinr + inDoubtUinr

function remaining(capUinr: bigint, status: BudgetStatus): bigint {
  const left = capUinr - usedUinr(status)
  return left > 0n ? left : 0n
}

interface Room {
  readonly capUinr: bigint
  readonly givenUinr: bigint
  readonly leftUinr: bigint
  readonly mostUinr: bigint
}

function notAvailable(parent: BudgetStatus, room: Room, requestedUinr: bigint | null): GatewayError {
  const mostInr = inrFromUinr(room.mostUinr > 0n ? room.mostUinr : 0n)
  const asked = requestedUinr === null ? 'so each of its children needs one: send monthly_budget_inr' : 'and this is more than a child can get of it'
  const figures = `₹${inrFromUinr(room.capUinr)} a month, ₹${inrFromUinr(room.leftUinr)} of it left, ₹${inrFromUinr(room.givenUinr)} given to other children`
  return fail('budget_not_available', {
    message: `Agent ${parent.id} has a budget (${figures}), ${asked}. At most ₹${mostInr} now.`,
    extra: {
      scope: 'agent',
      parent_id: Number(parent.id),
      parent_cap_inr: inrFromUinr(room.capUinr),
      parent_remaining_inr: inrFromUinr(room.leftUinr),
      other_children_cap_inr: inrFromUinr(room.givenUinr),
      most_inr: mostInr,
    },
  })
}
