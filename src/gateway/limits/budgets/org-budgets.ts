/** The budgets of one organisation, as its admins set and read them. */

import type { Db } from '../../../platform/db/db.ts'
import { fail } from '../../../platform/errors.ts'
import type { Flushable } from '../../../platform/flushable.ts'
import { rowId } from '../../../platform/values/row-id.ts'
import { isScope, type Scope } from '../engine/counters/counter-state.ts'
import { listBudgetRows } from '../engine/queries.ts'
import { capOfInr } from './budget-amount.ts'
import type { BudgetStatus, Budgets } from './budgets.ts'

/** The scopes whose owners are rows of an organisation. */
export type TargetScope = Exclude<Scope, 'org' | 'team'>

/** Looks up the owners of budgets in the domains that know them. */
export interface BudgetTargets {
  /** Returns the organisation itself. */
  org(orgId: number): Promise<{ readonly name: string; readonly kind: 'personal' | 'team' }>
  /** Returns the names of those ids that exist in the organisation and can still be charged. */
  names(orgId: number, scope: TargetScope, ids: readonly number[]): Promise<ReadonlyMap<number, string>>
  /** Returns the name of an owner that may get a budget, or null. Throws `agent_revoked` for a revoked agent. */
  name(orgId: number, scope: TargetScope, id: number): Promise<string | null>
}

export interface OrgBudgetsDeps {
  readonly db: Db
  readonly budgets: Budgets
  readonly targets: BudgetTargets
  /** Sets the cap of an agent within its family. Throws `agent_revoked` and `budget_not_available`. */
  setAgentCap(orgId: number, agentId: number, capUinr: bigint | null, options: { strict?: boolean }): Promise<unknown>
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
  readonly monthlyBudgetInr: number | null
  readonly strict?: boolean | undefined
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

interface Ref {
  readonly scope: Scope
  readonly scopeId: string
}

/** Sets and lists budgets of every scope. */
export class OrgBudgets {
  readonly #deps: OrgBudgetsDeps

  constructor(deps: OrgBudgetsDeps) {
    this.#deps = deps
  }

  /**
   * Sets a monthly budget in rupees; null clears it. The organisation is the only team of a team organisation, so `team` means `org` there.
   * Throws `bad_request`, `not_found` and, for an agent, `agent_revoked` and `budget_not_available`.
   */
  async set(orgId: number, params: BudgetParams): Promise<NamedBudget> {
    const { budgets, setAgentCap, journal } = this.#deps
    const capUinr = capOfInr(params.monthlyBudgetInr, { toStop: stopOf[params.scope] })
    const { scope, scopeId, name } = await this.#target(orgId, params)
    const options = params.strict === undefined ? {} : { strict: params.strict }
    await (scope === 'agent' ? setAgentCap(orgId, Number(scopeId), capUinr, options) : budgets.set(orgId, scope, scopeId, capUinr, options))
    await journal.flushNow()
    return { ...(await budgets.get(orgId, scope, scopeId)), name }
  }

  /**
   * Returns the budgets of the organisation, the widest scope first, at most `limit` after the cursor. Budgets whose owner is gone are left out.
   * Throws `bad_request` for an invalid cursor.
   */
  async list(orgId: number, limit: number, cursor: string | null): Promise<{ budgets: NamedBudget[]; nextCursor: string | null }> {
    await this.#deps.journal.flushNow()
    const found: (Ref & { name: string })[] = []
    let after = cursor === null ? null : cursorOf(cursor)
    for (;;) {
      const rows = await this.#deps.db.many(listBudgetRows, orgId, after?.scope ?? null, after?.scopeId ?? null, limit + 1)
      const names = await this.#namesOf(orgId, rows)
      for (const [i, row] of rows.entries()) {
        const name = names[i]
        if (name === undefined) continue
        if (found.length === limit) return { budgets: await this.#withFigures(orgId, found), nextCursor: textOf(found.at(-1)) }
        found.push({ ...row, name })
      }
      if (rows.length <= limit) return { budgets: await this.#withFigures(orgId, found), nextCursor: null }
      after = rows.at(-1) ?? null
    }
  }

  async #target(orgId: number, { scope, targetId }: BudgetParams): Promise<Ref & { name: string }> {
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

  /** Returns the names in the order of the refs, and undefined for an owner that is gone. */
  async #namesOf(orgId: number, refs: readonly Ref[]): Promise<(string | undefined)[]> {
    const { targets } = this.#deps
    const byScope = new Map<Scope, ReadonlyMap<number, string>>()
    for (const scope of new Set(refs.map(ref => ref.scope))) {
      const ids = refs.flatMap(ref => (ref.scope === scope ? [Number(ref.scopeId)] : []))
      byScope.set(scope, scope === 'org' || scope === 'team' ? new Map([[orgId, (await targets.org(orgId)).name]]) : await targets.names(orgId, scope, ids))
    }
    return refs.map(ref => byScope.get(ref.scope)?.get(Number(ref.scopeId)))
  }

  async #withFigures(orgId: number, found: readonly (Ref & { name: string })[]): Promise<NamedBudget[]> {
    const statuses = await this.#deps.budgets.list(orgId, found)
    return statuses.map((status, i) => ({ ...status, name: found[i]?.name ?? '' }))
  }
}

const textOf = (ref: Ref | undefined): string | null => (ref === undefined ? null : `${ref.scope}:${ref.scopeId}`)

function cursorOf(text: string): Ref {
  const match = /^([a-z]+):(\d{1,10})$/.exec(text)
  const [, scope = '', scopeId = ''] = match ?? []
  if (!isScope(scope)) throw fail('bad_request', { message: 'cursor must be the next_cursor of the page before.' })
  return { scope, scopeId }
}
