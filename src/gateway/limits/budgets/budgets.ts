/** Monthly budgets: the caps that an admin set, and the spend. */

import type { Db, Queryable, Tx } from '../../../platform/db/db.ts'
import type { ControlLog } from '../../../platform/db/db-control-log.ts'
import type { Ids } from '../../../platform/values/ids.ts'
import { endOfIstMonthMs, istMonth } from '../../../platform/values/ist-time.ts'
import type { CounterTable, Scope, ScopeRef } from '../engine/counters/counter-state.ts'
import { deleteBudget, listSpend, lockRunningSpend, setCap, upsertBudget } from '../engine/queries.ts'
import { lockBudgets, sumOfCaps, topAgents } from './budget-queries.ts'
import { crossed, emitCrossings } from './crossings.ts'

/** The state of a budget in the current month. Amounts are in micro-rupees. */
export interface BudgetStatus {
  readonly scope: Scope
  readonly id: string
  /** Null when there is no budget. Spend is counted in any case. */
  readonly capUinr: bigint | null
  readonly strict: boolean
  readonly spentUinr: bigint
  /** Held by running calls, plus slices that other processes have not used yet. */
  readonly heldUinr: bigint
  /** Leased by processes that may be dead. It is available again after their journal was replayed. */
  readonly inDoubtUinr: bigint
  readonly state: 'under' | 'warned' | 'blocked'
  /** The end of the IST month in Unix milliseconds. */
  readonly resetsAtMs: number
}

/** The kind of the control news of a changed cap. The ref is `orgId:scope:scopeId`. */
export const capChanged = 'cap_changed'

/** Parses the ref of `cap_changed` news. */
export function parseCapRef(ref: string): ScopeRef | null {
  const match = /^(\d+):([a-z]+):(.+)$/.exec(ref)
  return match ? { orgId: Number(match[1]), scope: match[2] as Scope, scopeId: match[3] ?? '' } : null
}

/** The id of a scope and what the scope has spent in the running month. */
export interface Spender {
  readonly scopeId: string
  readonly spentUinr: bigint
}

/** A spender, and whether it has spent the share of its budget that was asked for. */
export interface ChosenSpender extends Spender {
  readonly isChosen: boolean
}

interface Ref {
  readonly scope: Scope
  readonly scopeId: string
}

export interface BudgetsOptions {
  readonly db: Db
  readonly ids: Ids
  readonly controlLog: ControlLog
  readonly counters: CounterTable
  readonly nowMs: () => number
  readonly silentMs: number
}

/** The budgets of all organisations. The caller checks that the scope exists. */
export class Budgets {
  readonly #options: BudgetsOptions

  constructor(options: BudgetsOptions) {
    this.#options = options
  }

  /**
   * Sets the monthly cap of a scope; null or 0 clears it. New holds use the cap from the commit on in this process, and within a second in other
   * processes. A mark that the new cap puts below the spend fires immediately. A mark that already fired in this month does not fire again.
   */
  async set(orgId: number, scope: Scope, scopeId: string, capUinr: bigint | null, options: { strict?: boolean } = {}): Promise<void> {
    await this.#options.controlLog.change(async tx => {
      await this.setIn(tx, orgId, scope, scopeId, capUinr, options)
      return { value: undefined, news: [{ kind: capChanged, ref: `${orgId}:${scope}:${scopeId}` }] }
    })
  }

  /** Sets the cap inside the caller's transaction. The caller appends and applies the `cap_changed` news. */
  async setIn(tx: Tx, orgId: number, scope: Scope, scopeId: string, capUinr: bigint | null, options: { strict?: boolean } = {}): Promise<void> {
    const cap = capUinr !== null && capUinr > 0n ? capUinr : null
    const nowMs = this.#options.nowMs()
    let strict = false
    if (cap === null) await tx.exec(deleteBudget, orgId, scope, scopeId)
    else strict = (await tx.one(upsertBudget, orgId, scope, scopeId, cap, options.strict ?? null)).strict
    for (const row of await tx.many(lockRunningSpend, orgId, scope, scopeId, new Date(nowMs))) {
      const marks = crossed(row.spent, cap, row)
      await tx.exec(setCap, row.id, cap, strict, marks.warn, marks.block, new Date(nowMs))
      if (cap !== null) await emitCrossings(tx, this.#options.ids, nowMs, { orgId, scope, scopeId, spent: row.spent, cap }, marks)
    }
  }

  /** Returns the state of one scope. */
  async get(orgId: number, scope: Scope, scopeId: string): Promise<BudgetStatus> {
    const [status] = await this.list(orgId, [{ scope, scopeId }])
    if (status === undefined) throw new Error('a scope without a status')
    return status
  }

  /** Returns the states of these scopes, in their order. It sends one statement for any number of scopes. */
  list(orgId: number, refs: readonly Ref[]): Promise<BudgetStatus[]> {
    return this.#listIn(this.#options.db, orgId, refs)
  }

  /** Returns the states inside the caller's transaction and locks the budgets of these scopes until its end. */
  async holdIn(tx: Tx, orgId: number, refs: readonly Ref[]): Promise<BudgetStatus[]> {
    await tx.many(
      lockBudgets,
      orgId,
      refs.map(ref => ref.scope),
      refs.map(ref => ref.scopeId),
    )
    return this.#listIn(tx, orgId, refs)
  }

  /** Returns the sum of these scopes' monthly caps. Scopes without a budget count nothing. */
  async sumIn(tx: Tx, orgId: number, scope: Scope, scopeIds: readonly string[]): Promise<bigint> {
    return scopeIds.length === 0 ? 0n : (await tx.one(sumOfCaps, orgId, scope, scopeIds)).capUinr
  }

  /** Returns the running month, as counters name it. */
  period(): string {
    return istMonth(this.#options.nowMs())
  }

  /**
   * Returns the agents that have spent something in the running month, most first, after a position. With `usedPercent`, only agents that have spent at
   * least this share of their budget are chosen. The others are returned too, so that the caller knows how far the walk went.
   */
  topAgents(orgId: number, before: Spender, limit: number, usedPercent: number | null): Promise<ChosenSpender[]> {
    return this.#options.db.many(topAgents, orgId, istMonth(this.#options.nowMs()), before.spentUinr, before.scopeId, limit, usedPercent)
  }

  async #listIn(db: Queryable, orgId: number, refs: readonly Ref[]): Promise<BudgetStatus[]> {
    if (refs.length === 0) return []
    const nowMs = this.#options.nowMs()
    const rows = await db.many(
      listSpend,
      orgId,
      refs.map(ref => ref.scope),
      refs.map(ref => ref.scopeId),
      istMonth(nowMs),
      BigInt(this.#options.silentMs),
    )
    return rows.map((row): BudgetStatus => {
      const ref = refs[row.place - 1]
      if (ref === undefined) throw new Error('a row without its scope')
      const idle = row.counterId === null ? 0n : (this.#options.counters.byId(row.counterId)?.idle ?? 0n)
      const held = row.leased - row.inDoubt - idle
      return {
        scope: ref.scope,
        id: ref.scopeId,
        capUinr: row.capUinr,
        strict: row.strict,
        spentUinr: row.spent,
        heldUinr: held > 0n ? held : 0n,
        inDoubtUinr: row.inDoubt,
        state: stateOf(row.spent, row.capUinr),
        resetsAtMs: endOfIstMonthMs(nowMs),
      }
    })
  }
}

function stateOf(spent: bigint, cap: bigint | null): BudgetStatus['state'] {
  if (cap === null) return 'under'
  if (spent >= cap) return 'blocked'
  return spent * 100n >= cap * 80n ? 'warned' : 'under'
}
