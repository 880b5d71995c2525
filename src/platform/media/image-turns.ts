/** Limits how many images one process handles concurrently. Founders take turns. Decision 0497 gives the reasons. */
import type { Clock } from '../clock.ts'
import type { CancelSignal } from '../loop/cancellation.ts'
import { Shares } from '../shares.ts'

/** Maximum number of images that are processed concurrently. Each uses one thread of the pool. */
const atOnceMax = 2
/** Maximum number of images that wait. */
const waitingMax = 128
/** One founder may use at most this percentage of the waiting places that others leave free. */
const founderPercent = 50
/** Longest wait for a turn. */
const waitMsMax = 15_000

export class ImageTurns {
  readonly #clock: Pick<Clock, 'after'>
  readonly #places = new Shares<string>(waitingMax, founderPercent)
  /** The waiting images of each founder. The founder whose last turn was longest ago is first. */
  readonly #waiting = new Map<string, Set<() => void>>()
  readonly #running = new Map<string, number>()

  constructor(clock: Pick<Clock, 'after'>) {
    this.#clock = clock
  }

  /** Runs the work when it is the founder's turn. Returns null without running it when too many images wait, the wait is too long, or the call is cancelled. */
  async run<T>(founder: string, signal: CancelSignal, work: () => Promise<T>): Promise<T | null> {
    if (signal.aborted) return null
    if (this.#count() < atOnceMax) this.#begin(founder)
    else if (!(await this.#wait(founder, signal))) return null
    try {
      return signal.aborted ? null : await work()
    } finally {
      this.#end(founder)
    }
  }

  /** Returns true when the turn has come, and false when it does not come. */
  async #wait(founder: string, signal: CancelSignal): Promise<boolean> {
    if (this.#places.take(founder) !== null) return false
    const own = this.#waiting.get(founder) ?? new Set()
    this.#waiting.set(founder, own)
    let leave = (): void => {}
    let stopTimer = (): void => {}
    try {
      return await new Promise<boolean>(resolve => {
        const begin = (): void => resolve(true)
        leave = () => {
          // If this set became empty in the meantime, the founder may have a new set by now.
          if (own.delete(begin)) resolve(false)
          if (own.size === 0 && this.#waiting.get(founder) === own) this.#waiting.delete(founder)
        }
        own.add(begin)
        signal.addEventListener('abort', leave)
        stopTimer = this.#clock.after(waitMsMax, leave)
      })
    } finally {
      stopTimer()
      signal.removeEventListener('abort', leave)
      this.#places.give(founder)
    }
  }

  #count(): number {
    let count = 0
    for (const own of this.#running.values()) count += own
    return count
  }

  #begin(founder: string): void {
    this.#running.set(founder, (this.#running.get(founder) ?? 0) + 1)
  }

  #end(founder: string): void {
    const left = (this.#running.get(founder) ?? 1) - 1
    if (left > 0) this.#running.set(founder, left)
    else this.#running.delete(founder)
    const next = this.#next()
    const own = next === null ? undefined : this.#waiting.get(next)
    const [begin] = own ?? []
    if (next === null || own === undefined || begin === undefined) return
    own.delete(begin)
    this.#waiting.delete(next)
    if (own.size > 0) this.#waiting.set(next, own)
    this.#begin(next)
    begin()
  }

  /** Returns the first founder without a running image, or else the first one. Null when nobody waits. */
  #next(): string | null {
    for (const founder of this.#waiting.keys()) if (!this.#running.has(founder)) return founder
    const [first] = this.#waiting.keys()
    return first ?? null
  }
}
