/** The budgets of one organisation, as its admins set and read them. */

import type { Db } from '../../../platform/db/db.ts'
import { fail } from '../../../platform/errors.ts'
import type { Flushable } from '../../../platform/flushable.ts'
import { rowId } from '../../../platform/values/row-id.ts'
import type { Scope } from '../engine/counters/counter-state.ts'
import { capOfInr } from './budget-amount.ts'
import { type BudgetFilter, type BudgetRef, pageOfBudgets } from './budget-list.ts'
import type { BudgetTargets } from './budget-targets.ts'
import type { BudgetChange, BudgetStatus, Budgets } from './budgets.ts'
import { type BudgetPeriod, budgetPeriods } from './periods/period.ts'

export interface OrgBudgetsDeps {
  readonly db: Db
  readonly budgets: Budgets
  readonly targets: BudgetTargets
  /** Sets the monthly cap of an agent within its family. Throws `agent_revoked` and `budget_not_available`. */
  setAgentCap(orgId: number, agentId: number, capUinr: bigint | null, options: Omit<BudgetChange, 'period'>): Promise<unknown>
  /** The journal of this process. A flush brings the spend that this process has settled into the figures. */
  readonly journal: Flushable
}

/** A budget with the name of its owner. */
export interface NamedBudget extends BudgetStatus {
  readonly name: string
}

export interface BudgetParams {
  readonly scope: Scope
  /** Null means the caller's own organisation, for the scopes `org` and `team`. */
  readonly targetId: string | number | null
  readonly period: BudgetPeriod
  readonly budgetInr: number | null
  /** The name of the field with the amount, for messages. */
  readonly field: 'monthly_budget_inr' | 'budget_inr'
  readonly strict?: boolean | undefined
  readonly warnPercent?: readonly number[] | undefined
}

/** The action that ends the calls of a scope, in words. */
const stopOf: Readonly<Record<Scope | 'team', string>> = {
  org: 'disable its keys',
  team: 'disable its keys',
  workspace: 'disable the keys that are bound to it',
  member: "disable the member's keys",
  key: 'disable the key: PATCH /me/keys/{id} with {"enabled": false}',
  agent: 'pause the agent: POST /v1/me/agents/{id}/pause',
}

/** Sets and lists budgets of every scope. */
export class OrgBudgets {
  readonly #deps: OrgBudgetsDeps

  constructor(deps: OrgBudgetsDeps) {
    this.#deps = deps
  }

  /**
   * Sets the budget of a period in rupees; null clears it. The organisation is the only team of a team organisation, so `team` means `org` there.
   * Throws `bad_request`, `not_found` and, for an agent, `agent_revoked` and `budget_not_available`.
   */
  async set(orgId: number, params: BudgetParams): Promise<NamedBudget> {
    const { budgets, setAgentCap, journal } = this.#deps
    const { period, strict, warnPercent } = params
    const capUinr = capOfInr(params.budgetInr, { field: params.field, toStop: stopOf[params.scope] })
    const { scope, scopeId, name } = await this.#target(orgId, params)
    const options = { ...(strict === undefined ? {} : { strict }), ...(warnPercent === undefined ? {} : { warnPercent }) }
    // The sum of the budgets of an agent's children is checked for months only. A call of a child counts in the budgets of all agents above it in any case.
    if (scope === 'agent' && period === 'month') await setAgentCap(orgId, Number(scopeId), capUinr, options)
    else await budgets.set(orgId, scope, scopeId, capUinr, { ...options, period })
    await journal.flushNow()
    return { ...(await budgets.get(orgId, scope, scopeId, period)), name }
  }

  /** Returns a page of the budgets that a filter chooses, and the cursor of the next page. Throws `bad_request` for an invalid cursor. */
  async list(orgId: number, filter: BudgetFilter): Promise<{ budgets: NamedBudget[]; nextCursor: string | null }> {
    const { db, targets, budgets, journal } = this.#deps
    await journal.flushNow()
    const windows = await budgets.windows(orgId)
    const { refs, nextCursor } = await pageOfBudgets({ db, targets, periods: budgetPeriods.map(period => windows[period].name) }, orgId, filter)
    return { budgets: await this.#withFigures(orgId, refs), nextCursor }
  }

  async #target(orgId: number, { scope, targetId }: BudgetParams): Promise<Omit<BudgetRef, 'period'>> {
    const { targets } = this.#deps
    if (scope === 'org' || scope === 'team') {
      const org = await targets.org(orgId)
      if (targetId !== null && String(targetId) !== String(orgId)) throw fail('not_found', { message: 'That is not your organisation. Leave target_id out.' })
      if (scope === 'team' && org.kind === 'personal')
        throw fail('bad_request', { message: 'A personal organisation has no team. Use the scope org, or make a team organisation with POST /me/orgs.' })
      return { scope: 'org', scopeId: String(orgId), name: org.name }
    }
    if (targetId === null) throw fail('bad_request', { message: `target_id is missing: send the id of the ${scope}.` })
    const id = rowId(targetId)
    const name = id === null ? null : await targets.name(orgId, scope, id)
    if (id === null || name === null) throw fail('not_found', { message: `There is no such ${scope}.` })
    return { scope, scopeId: String(id), name }
  }

  async #withFigures(orgId: number, found: readonly BudgetRef[]): Promise<NamedBudget[]> {
    const statuses = new Map((await this.#deps.budgets.listAll(orgId, found)).map(status => [`${status.scope}:${status.id}:${status.period}`, status]))
    // A budget that was removed meanwhile has no status.
    return found.flatMap(({ scope, scopeId, period, name }) => {
      const status = statuses.get(`${scope}:${scopeId}:${period}`)
      return status === undefined ? [] : [{ ...status, name }]
    })
  }
}
