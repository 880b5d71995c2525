import type { Clock } from '../../clock.ts'
import { DatabaseUnavailableError } from '../db.ts'

/** Longest wait for the session, in milliseconds. The project chose this number. */
const waitMaxMs = 10_000
/** Maximum number of waiting callers. It bounds the memory of the queue. */
const waitingMax = 10_000

interface Waiting {
  readonly begin: () => void
  readonly refuse: (error: Error) => void
  readonly stopTimer: () => void
}

/** The queue of the single session: one caller at a time, in the order of arrival. */
export class Turns {
  readonly #clock: Clock
  readonly #waiting = new Set<Waiting>()
  #isBusy = false
  #refusal: Error | null = null
  #onIdle: (() => void) | null = null

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /**
   * Runs `work` alone. Throws DatabaseUnavailableError when its turn does not come within 10 s, or when 10,000 callers are already waiting.
   */
  async run<T>(work: () => Promise<T>): Promise<T> {
    await this.#begin()
    try {
      return await work()
    } finally {
      this.#next()
    }
  }

  #begin(): Promise<void> {
    if (this.#refusal !== null) return Promise.reject(this.#refusal)
    if (!this.#isBusy) {
      this.#isBusy = true
      return Promise.resolve()
    }
    if (this.#waiting.size >= waitingMax) return Promise.reject(new DatabaseUnavailableError(`${waitingMax} callers wait for the embedded database already`))
    return new Promise<void>((begin, refuse) => {
      const stopTimer = this.#clock.after(waitMaxMs, () => {
        this.#waiting.delete(waiting)
        refuse(
          new DatabaseUnavailableError(
            `waited ${waitMaxMs} ms for the session of the embedded database; a query on the outer db inside a transaction waits for itself`,
          ),
        )
      })
      const waiting: Waiting = { begin, refuse, stopTimer }
      this.#waiting.add(waiting)
    })
  }

  #next(): void {
    const [first] = this.#waiting
    if (first === undefined) {
      this.#isBusy = false
      this.#onIdle?.()
      return
    }
    this.#waiting.delete(first)
    first.stopTimer()
    first.begin()
  }

  /** Refuses all waiting and new callers. Resolves when the running work is done. */
  async close(refusal: Error): Promise<void> {
    this.#refusal = refusal
    for (const waiting of this.#waiting) {
      waiting.stopTimer()
      waiting.refuse(refusal)
    }
    this.#waiting.clear()
    if (this.#isBusy) await new Promise<void>(done => (this.#onIdle = done))
  }
}
