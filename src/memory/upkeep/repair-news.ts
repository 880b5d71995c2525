import type { Clock } from '../../platform/clock.ts'

/** Maximum number of corrections of one organisation that become news in one window. Decision 0524 says why. */
const newsMax = 1_000
const windowMs = 10 * 60_000
/** Maximum number of organisations that are counted. Above it, the one whose window began first is forgotten. */
const orgsMax = 10_000

/** Counts the news that comparisons make, by organisation. A store can change all its etags at any time, and each change would become a row. */
export class RepairNews {
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #counted = new Map<number, { count: number; readonly sinceMs: number }>()

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock
  }

  /** Returns how many corrections of the organisation may become news now. */
  left(orgId: number): number {
    const counted = this.#counted.get(orgId)
    return counted === undefined || this.#isOver(counted) ? newsMax : Math.max(0, newsMax - counted.count)
  }

  /** Notes that corrections have become news. */
  note(orgId: number, count: number): void {
    if (count === 0) return
    const counted = this.#counted.get(orgId)
    if (counted !== undefined && !this.#isOver(counted)) {
      counted.count += count
      return
    }
    this.#counted.delete(orgId)
    this.#counted.set(orgId, { count, sinceMs: this.#clock.monotonicMs() })
    const [first] = this.#counted.keys()
    if (this.#counted.size > orgsMax && first !== undefined) this.#counted.delete(first)
  }

  #isOver({ sinceMs }: { readonly sinceMs: number }): boolean {
    return this.#clock.monotonicMs() - sinceMs >= windowMs
  }
}
