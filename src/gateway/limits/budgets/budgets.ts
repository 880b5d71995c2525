/** Budgets: the caps that an admin set for a scope and a period, and the spend. */

import type { Db, Queryable, Tx } from '../../../platform/db/db.ts'
import type { ControlLog } from '../../../platform/db/db-control-log.ts'
import type { Ids } from '../../../platform/values/ids.ts'
import { endOfIstMonthMs, istMonth } from '../../../platform/values/ist-time.ts'
import type { CounterTable, Scope, ScopeRef } from '../engine/counters/counter-state.ts'
import { deleteBudget, listPeriodSpend, listSpend, lockRunningSpend, type SpendRow, setCap, upsertBudget } from '../engine/queries.ts'
import { lockBudgets, sumOfCaps, topAgents } from './budget-queries.ts'
import { crossed, emitCrossings, isAny } from './crossings.ts'
import { type BudgetPeriod, budgetPeriods, type PeriodWindow } from './periods/period.ts'
import { deletePeriodBudget, upsertPeriodBudget } from './periods/period-queries.ts'
import { findZones, zonesOf } from './periods/zone-queries.ts'
import { BudgetCalendar, defaultZones } from './periods/zones.ts'

/** An increase of a budget, which ends. */
export interface Increase {
  readonly uinr: bigint
  readonly untilMs: number
}

/** The state of a budget in its running period. Amounts are in micro-rupees. */
export interface BudgetStatus {
  readonly scope: Scope
  readonly id: string
  readonly period: BudgetPeriod
  /** Null when there is no budget. Spend is counted in any case. */
  readonly capUinr: bigint | null
  readonly strict: boolean
  readonly spentUinr: bigint
  /** Held by running calls, plus slices that other processes have not used yet. */
  readonly heldUinr: bigint
  /** Leased by processes that may be dead. It is available again after their journal was replayed. */
  readonly inDoubtUinr: bigint
  /** What a person has granted beside the cap, until it ends. Null: nothing. */
  readonly increase: Increase | null
  readonly state: 'under' | 'warned' | 'blocked'
  /** The marks that its owner has added, in percent. */
  readonly warnPercent: readonly number[]
  /** The end of the period in Unix milliseconds. Null when it never ends. */
  readonly resetsAtMs: number | null
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

/** Properties of a budget besides its cap. A property that is left out stays as it is. */
export interface BudgetChange {
  readonly strict?: boolean
  /** Default: the month. */
  readonly period?: BudgetPeriod
  readonly warnPercent?: readonly number[]
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
  readonly #calendar = new BudgetCalendar()

  constructor(options: BudgetsOptions) {
    this.#options = options
  }

  /**
   * Sets the cap of a scope for a period; null or 0 clears it. New holds use the cap from the commit on in this process, and within a second in other
   * processes. A mark that the new cap puts below the spend fires immediately. A mark that already fired in this period does not fire again.
   */
  async set(orgId: number, scope: Scope, scopeId: string, capUinr: bigint | null, options: BudgetChange = {}): Promise<void> {
    await this.#options.controlLog.change(async tx => {
      await this.setIn(tx, orgId, scope, scopeId, capUinr, options)
      return { value: undefined, news: [{ kind: capChanged, ref: `${orgId}:${scope}:${scopeId}` }] }
    })
  }

  /** Sets the cap inside the caller's transaction. The caller appends and applies the `cap_changed` news. */
  async setIn(tx: Tx, orgId: number, scope: Scope, scopeId: string, capUinr: bigint | null, options: BudgetChange = {}): Promise<void> {
    const cap = capUinr !== null && capUinr > 0n ? capUinr : null
    const nowMs = this.#options.nowMs()
    const { period = 'month' } = options
    const { strict, warnPercent } = await write(tx, { orgId, scope, scopeId, period }, cap, options)
    for (const row of await tx.many(lockRunningSpend, orgId, scope, scopeId, period, new Date(nowMs))) {
      const most = cap === null ? null : cap + row.extra
      const marks = crossed(row.spent, most, { ...row, warnPercent })
      await tx.exec(setCap, row.id, cap, strict, marks.warn, marks.block, new Date(nowMs), warnPercent, marks.marked)
      if (most !== null && isAny(marks)) await emitCrossings(tx, this.#options.ids, nowMs, { ...row, orgId, scope, scopeId, cap: most }, marks)
    }
  }

  /** Returns the state of one scope. A scope without a budget has figures for the month only. */
  async get(orgId: number, scope: Scope, scopeId: string, period: BudgetPeriod = 'month'): Promise<BudgetStatus> {
    const refs = [{ scope, scopeId }]
    const statuses = period === 'month' ? await this.list(orgId, refs) : await this.#othersOf(orgId, refs)
    const status = statuses.find(one => one.period === period)
    return status ?? { ...noSpend, scope, id: scopeId, period, resetsAtMs: endOf((await this.windows(orgId))[period]) }
  }

  /** Returns the budgets of these scopes, of every period, in the order of the scopes and from the longest period to the shortest. */
  async listAll(orgId: number, refs: readonly Ref[]): Promise<BudgetStatus[]> {
    const [months, others] = await Promise.all([this.list(orgId, refs), this.#othersOf(orgId, refs)])
    const all = [...months.filter(status => status.capUinr !== null), ...others]
    const placeOf = ({ scope, id, period }: BudgetStatus): number =>
      refs.findIndex(ref => ref.scope === scope && ref.scopeId === id) * budgetPeriods.length + budgetPeriods.indexOf(period)
    return all
      .map(status => ({ status, place: placeOf(status) }))
      .sort((a, b) => a.place - b.place)
      .map(({ status }) => status)
  }

  /** Returns the running windows of an organisation's budgets. */
  async windows(orgId: number, db: Queryable = this.#options.db): Promise<Readonly<Record<BudgetPeriod, PeriodWindow>>> {
    const row = await db.maybe(findZones, orgId)
    const zones = (row === null ? null : zonesOf(row)) ?? defaultZones
    const nowMs = this.#options.nowMs()
    const at = (period: BudgetPeriod): PeriodWindow => this.#calendar.windowAt(zones, period, nowMs)
    return { ever: at('ever'), month: at('month'), week: at('week'), day: at('day') }
  }

  /** Returns the monthly states of these scopes, in their order. */
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
    const { month } = await this.windows(orgId, db)
    const rows = await db.many(
      listSpend,
      orgId,
      refs.map(ref => ref.scope),
      refs.map(ref => ref.scopeId),
      istMonth(nowMs),
      BigInt(this.#options.silentMs),
      month.name,
    )
    return rows.map(row => this.#statusOf(row, refs, 'month', row.capUinr === null ? endOfIstMonthMs(nowMs) : month.endsAtMs))
  }

  /** Returns the budgets of a day, a week and of all time that these scopes have. */
  async #othersOf(orgId: number, refs: readonly Ref[]): Promise<BudgetStatus[]> {
    const { db, silentMs } = this.#options
    const windows = await this.windows(orgId)
    const rows = await db.many(
      listPeriodSpend,
      orgId,
      refs.map(ref => ref.scope),
      refs.map(ref => ref.scopeId),
      budgetPeriods,
      BigInt(silentMs),
      budgetPeriods.map(period => windows[period].name),
    )
    return rows.map(row => this.#statusOf(row, refs, row.period, endOf(windows[row.period])))
  }

  #statusOf(row: SpendRow, refs: readonly Ref[], period: BudgetPeriod, resetsAtMs: number | null): BudgetStatus {
    const ref = refs[row.place - 1]
    if (ref === undefined) throw new Error('a row without its scope')
    const idle = row.counterId === null ? 0n : (this.#options.counters.byId(row.counterId)?.idle ?? 0n)
    const held = row.leased - row.inDoubt - idle
    return {
      scope: ref.scope,
      id: ref.scopeId,
      period,
      capUinr: row.capUinr,
      strict: row.strict,
      spentUinr: row.spent,
      heldUinr: held > 0n ? held : 0n,
      inDoubtUinr: row.inDoubt,
      increase: row.capUinr === null || row.extraUntil === null ? null : { uinr: row.extra, untilMs: row.extraUntil.getTime() },
      state: stateOf(row.spent, row.capUinr === null ? null : row.capUinr + row.extra),
      warnPercent: row.warnPercent,
      resetsAtMs,
    }
  }
}

const noSpend = { capUinr: null, strict: false, spentUinr: 0n, heldUinr: 0n, inDoubtUinr: 0n, increase: null, state: 'under', warnPercent: [] } as const

const endOf = ({ endsAtMs }: PeriodWindow): number | null => (Number.isFinite(endsAtMs) ? endsAtMs : null)

/** Writes or deletes the row of a budget. Monthly budgets have their own table. Decision 0797 gives the reasons. */
async function write(
  tx: Tx,
  { orgId, scope, scopeId, period }: Ref & { readonly orgId: number; readonly period: BudgetPeriod },
  cap: bigint | null,
  { strict = null, warnPercent = null }: { readonly strict?: boolean | null; readonly warnPercent?: readonly number[] | null },
): Promise<{ readonly strict: boolean; readonly warnPercent: readonly number[] }> {
  if (cap === null) {
    if (period === 'month') await tx.exec(deleteBudget, orgId, scope, scopeId)
    else await tx.exec(deletePeriodBudget, orgId, scope, scopeId, period)
    return { strict: false, warnPercent: [] }
  }
  if (period === 'month') return tx.one(upsertBudget, orgId, scope, scopeId, cap, strict, warnPercent)
  return tx.one(upsertPeriodBudget, orgId, scope, scopeId, period, cap, strict, warnPercent)
}

function stateOf(spent: bigint, cap: bigint | null): BudgetStatus['state'] {
  if (cap === null) return 'under'
  if (spent >= cap) return 'blocked'
  return spent * 100n >= cap * 80n ? 'warned' : 'under'
}
