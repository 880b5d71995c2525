/** A simple model of budgets: integers, without a database and without leases. The engines are compared with it. */

/** One budget over its months. A null `cap` means no cap. */
class ModelBudget {
  cap: bigint | null = null
  strict = false
  readonly spent = new Map<string, bigint>()
}

/** An admitted call, with its hold in every budget. */
export interface ModelCall {
  readonly engine: number
  readonly month: string
  held: bigint
  /** For each budget, whether the call has a hold in it. It has one if the budget had a cap at admission. */
  readonly holds: readonly boolean[]
  /** The charge if its process dies now. Null when the call was not opened, so nothing is charged. */
  draft: bigint | null
}

/** Two budgets that apply to every call, and the running calls. */
export class Model {
  readonly budgets: readonly ModelBudget[] = [new ModelBudget(), new ModelBudget()]
  readonly running = new Set<ModelCall>()
  /** Calls of dead engines that are not adopted yet. */
  readonly doubtful = new Set<ModelCall>()
  /** For each engine, the cost of its calls above their holds. Only that engine knows this amount until it flushes. */
  readonly unheard = new Map<number, bigint>()
  month = ''

  spent(budget: number, month = this.month): bigint {
    return this.budgets[budget]?.spent.get(month) ?? 0n
  }

  /** Returns the holds in a budget of the calls of a month, including calls in doubt. */
  held(budget: number, month = this.month): bigint {
    let sum = 0n
    for (const calls of [this.running, this.doubtful]) for (const call of calls) if (call.month === month && call.holds[budget]) sum += call.held
    return sum
  }

  /** Returns the rest of a budget without the holds. Null when it has no cap. */
  room(budget: number, month = this.month): bigint | null {
    const cap = this.budgets[budget]?.cap ?? null
    return cap === null ? null : cap - this.spent(budget, month) - this.held(budget, month)
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
    for (const { spent } of this.budgets) spent.set(call.month, (spent.get(call.month) ?? 0n) + value)
    this.running.delete(call)
    this.doubtful.delete(call)
    // A budget that was set after the admission has no hold for the call.
    const covered = call.holds.every(Boolean) ? call.held : 0n
    if (value > covered) this.unheard.set(call.engine, (this.unheard.get(call.engine) ?? 0n) + value - covered)
  }

  /** Returns the amount that other engines have not flushed yet. */
  unheardOf(engine: number): bigint {
    let sum = 0n
    for (const [other, amount] of this.unheard) if (other !== engine) sum += amount
    return sum
  }
}
