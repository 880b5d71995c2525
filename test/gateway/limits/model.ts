/** What budgets are, in a few lines: integers, no database, no slices. The engines are compared with it. */

/** One budget over its months. `cap` null: none. */
class ModelBudget {
  cap: bigint | null = null
  strict = false
  readonly spent = new Map<string, bigint>()
}

/** A call that was let in, with what it holds in every budget. */
export interface ModelCall {
  readonly engine: number
  readonly month: string
  held: bigint
  /** Which budgets it holds in: those that had a cap when it was let in. */
  readonly holds: readonly boolean[]
  /** What it is worth if its process dies now; null: it was not opened, so nothing. */
  draft: bigint | null
}

/** Two budgets that bind every call, and the calls that run. */
export class Model {
  readonly budgets: readonly ModelBudget[] = [new ModelBudget(), new ModelBudget()]
  readonly running = new Set<ModelCall>()
  /** Calls of engines that died and were not adopted yet. */
  readonly doubtful = new Set<ModelCall>()
  /** What calls of an engine cost beyond their holds and only that engine knows, because it has not flushed. */
  readonly unheard = new Map<number, bigint>()
  month = ''

  spent(budget: number, month = this.month): bigint {
    return this.budgets[budget]?.spent.get(month) ?? 0n
  }

  /** Held in a budget by calls of a month, in doubt or not. */
  held(budget: number, month = this.month): bigint {
    let sum = 0n
    for (const calls of [this.running, this.doubtful]) for (const call of calls) if (call.month === month && call.holds[budget]) sum += call.held
    return sum
  }

  /** What a budget has left beside what is held; null: it binds nobody. */
  room(budget: number, month = this.month): bigint | null {
    const cap = this.budgets[budget]?.cap ?? null
    return cap === null ? null : cap - this.spent(budget, month) - this.held(budget, month)
  }

  /** The first budget that must refuse a call of this need, or null. The last call is let in while anything is left, unless the budget is strict. */
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
    // A budget that was set after the call was let in holds nothing for it.
    const covered = call.holds.every(Boolean) ? call.held : 0n
    if (value > covered) this.unheard.set(call.engine, (this.unheard.get(call.engine) ?? 0n) + value - covered)
  }

  /** What other engines have not told. */
  unheardOf(engine: number): bigint {
    let sum = 0n
    for (const [other, amount] of this.unheard) if (other !== engine) sum += amount
    return sum
  }
}
