/**
 * Time limits for work that calls a store. A limit measures the store, so its clock stops while the work waits for a turn of the gateway itself. Decision
 * 0520 says why.
 */
import type { Clock } from '../platform/clock.ts'
import { ObjectStoreError } from './stores/object-store.ts'

/** Maximum time of the work of one request, or of one configuration, that reads pages or several objects from a store. */
export const storeWorkMsMax = 30_000

type LimitClock = Pick<Clock, 'after' | 'monotonicMs'>

/** One time limit. It ends once, when its time is over. */
class TimeLimit {
  readonly #clock: LimitClock
  readonly #expire: () => void
  #leftMs: number
  #sinceMs = 0
  #stopTimer: (() => void) | null = null
  /** Number of waits that are running. */
  #waits = 0
  #isOver = false

  constructor(clock: LimitClock, limitMs: number, expire: () => void) {
    this.#clock = clock
    this.#leftMs = limitMs
    this.#expire = expire
    this.#start()
  }

  /** Stops the clock until as many calls of `resume` have come. */
  pause(): void {
    if (this.#waits++ > 0 || this.#stopTimer === null) return
    this.#stopTimer()
    this.#stopTimer = null
    this.#leftMs -= this.#clock.monotonicMs() - this.#sinceMs
  }

  resume(): void {
    if (--this.#waits === 0 && !this.#isOver) this.#start()
  }

  end(): void {
    this.#isOver = true
    this.#stopTimer?.()
    this.#stopTimer = null
  }

  #start(): void {
    this.#sinceMs = this.#clock.monotonicMs()
    this.#stopTimer = this.#clock.after(Math.max(0, this.#leftMs), () => {
      this.end()
      this.#expire()
    })
  }
}

/** The limits that bind the work of a signal. */
const limitsOf = new WeakMap<AbortSignal, readonly TimeLimit[]>()

/**
 * Runs the work with a signal that aborts with the error of `late` after `limitMs`, or when `outer` aborts. Throws the errors of the work, which are the
 * reason of the signal when it has aborted.
 */
export async function withinTime<T>(
  clock: LimitClock,
  outer: AbortSignal | undefined,
  limitMs: number,
  late: () => Error,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController()
  const limit = new TimeLimit(clock, limitMs, () => controller.abort(late()))
  const signal = outer === undefined ? controller.signal : AbortSignal.any([outer, controller.signal])
  limitsOf.set(signal, [limit, ...((outer && limitsOf.get(outer)) ?? [])])
  try {
    return await work(signal)
  } finally {
    limit.end()
  }
}

/** Runs the work as `withinTime` does. Throws ObjectStoreError `unavailable` when the time is over. */
export function withinStoreTime<T>(
  clock: LimitClock,
  signal: AbortSignal | undefined,
  work: (signal: AbortSignal) => Promise<T>,
  limitMs = storeWorkMsMax,
): Promise<T> {
  const late = (): Error => new ObjectStoreError('unavailable', `the store needs more than the ${limitMs / 1000} s that this work may take`)
  return withinTime(clock, signal, limitMs, late, work)
}

/** Waits for the gateway itself, not for a store. The clocks of the limits that bind the signal stop meanwhile. Throws the errors of the wait. */
export async function outsideStoreTime<T>(signal: AbortSignal | undefined, wait: () => Promise<T>): Promise<T> {
  const limits = (signal && limitsOf.get(signal)) ?? []
  for (const limit of limits) limit.pause()
  try {
    return await wait()
  } finally {
    for (const limit of limits) limit.resume()
  }
}
