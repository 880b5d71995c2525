/** A simple model of budgets: integers, without a database and without leases. The engines are compared with it. */
import type { BudgetPeriod } from '../../../src/gateway/limits/budgets/periods/period.ts'

/** One budget over its periods. A null `cap` means no cap. */
class ModelBudget {
  readonly scope: 'key' | 'org'
  readonly period: BudgetPeriod
  cap: bigint | null = null
  strict = false
  /** By the names of periods. */
  readonly spent = new Map<string, bigint>()

  constructor(scope: 'key' | 'org', period: BudgetPeriod) {
    this.scope = scope
    this.period = period
  }
}

/** An admitted call, with its hold in every budget. */
export interface ModelCall {
  readonly engine: number
  /** For each budget, the period of its admission. */
  readonly windows: readonly string[]
  held: bigint
  /** For each budget, whether the call has a hold in it. It has one if the budget had a cap at admission. */
  readonly holds: readonly boolean[]
  /** The charge if its process dies now. Null when the call was not opened, so nothing is charged. */
  draft: bigint | null
}

/** Budgets of several periods that apply to every call, and the running calls. */
export class Model {
  readonly budgets: readonly ModelBudget[] = [
    new ModelBudget('key', 'month'),
    new ModelBudget('org', 'month'),
    new ModelBudget('key', 'day'),
    new ModelBudget('org', 'week'),
    new ModelBudget('key', 'ever'),
  ]
  readonly running = new Set<ModelCall>()
  /** Calls of dead engines that are not adopted yet. */
  readonly doubtful = new Set<ModelCall>()
  /** For each engine, the cost of its calls above their holds. Only that engine knows this amount until it flushes. */
  readonly unheard = new Map<number, bigint>()
  /** For each budget, the running period. */
  windows: readonly string[] = []

  spent(budget: number, window = this.windows[budget] ?? ''): bigint {
    return this.budgets[budget]?.spent.get(window) ?? 0n
  }

  /** Returns the holds in a budget of the calls of the running period, including calls in doubt. */
  held(budget: number): bigint {
    let sum = 0n
    for (const calls of [this.running, this.doubtful])
      for (const call of calls) if (call.windows[budget] === this.windows[budget] && call.holds[budget]) sum += call.held
    return sum
  }

  /** Returns the rest of a budget without the holds. Null when it has no cap. */
  room(budget: number): bigint | null {
    const cap = this.budgets[budget]?.cap ?? null
    return cap === null ? null : cap - this.spent(budget) - this.held(budget)
  }

  /** Returns the first budget that must refuse a call with this hold, or null. A budget that is not strict admits a last call while anything is left. */
  refuses(need: bigint, unheard = 0n): number | null {
    for (const [i, { strict }] of this.budgets.entries()) {
      const room = this.room(i)
      if (room !== null && (strict ? room + unheard < need : room + unheard <= 0n)) return i
    }
    return null
  }

  charge(call: ModelCall, value: bigint): void {
    for (const [i, { period, spent }] of this.budgets.entries()) {
      // A month counts every call. Another period counts the calls that were admitted while it had a budget.
      if (period !== 'month' && !call.holds[i]) continue
      const window = call.windows[i] ?? ''
      spent.set(window, (spent.get(window) ?? 0n) + value)
    }
    this.running.delete(call)
    this.doubtful.delete(call)
    // A budget that was set after the admission has no hold for the call.
    const covered = this.budgets.every(({ period }, i) => call.holds[i] || period !== 'month') ? call.held : 0n
    if (value > covered) this.unheard.set(call.engine, (this.unheard.get(call.engine) ?? 0n) + value - covered)
  }

  /** Returns the amount that other engines have not flushed yet. */
  unheardOf(engine: number): bigint {
    let sum = 0n
    for (const [other, amount] of this.unheard) if (other !== engine) sum += amount
    return sum
  }
}
