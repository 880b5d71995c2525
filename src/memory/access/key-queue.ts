import type { Clock } from '../../platform/clock.ts'

/** A caller waited for its turn longer than it allowed. */
export class QueueTimeoutError extends Error {
  override readonly name = 'QueueTimeoutError'
}

/** Runs one piece of work at a time for each key, in the order of arrival, within this process. */
export class KeyQueue {
  readonly #clock: Clock
  readonly #tails = new Map<string, Promise<void>>()
  readonly #waiting = new Map<string, number>()
  readonly #restsUntilMs = new Map<string, number>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /**
   * Runs `work` after every earlier work of this key has ended. `work` receives true when it had to wait for earlier work. Throws QueueTimeoutError when
   * the wait takes longer than `waitMs`. The next waiter then gets the turn.
   */
  async run<T>(key: string, work: (hasWaited: boolean) => Promise<T>, waitMs?: number): Promise<T> {
    const before = this.#tails.get(key)
    let pass = (): void => {}
    const mine = new Promise<void>(resolve => {
      pass = resolve
    })
    const tail = before === undefined ? mine : before.then(() => mine)
    this.#tails.set(key, tail)
    void tail.then(() => {
      if (this.#tails.get(key) === tail) this.#tails.delete(key)
    })
    try {
      if (before !== undefined) await this.#counted(key, this.#turn(before, waitMs))
      await this.#rest(key)
      return await work(before !== undefined)
    } finally {
      pass()
    }
  }

  /** Returns whether a caller waits for a turn of this key. */
  hasWaiters(key: string): boolean {
    return this.#waiting.has(key)
  }

  async #counted(key: string, turn: Promise<void>): Promise<void> {
    this.#waiting.set(key, (this.#waiting.get(key) ?? 0) + 1)
    try {
      await turn
    } finally {
      const left = (this.#waiting.get(key) ?? 1) - 1
      if (left === 0) this.#waiting.delete(key)
      else this.#waiting.set(key, left)
    }
  }

  /** Delays the next work of this key by at least `ms`, so that a process that waits for the key can take it. */
  rest(key: string, ms: number): void {
    this.#restsUntilMs.set(key, this.#clock.monotonicMs() + ms)
    this.#clock.after(ms, () => {
      if ((this.#restsUntilMs.get(key) ?? 0) <= this.#clock.monotonicMs()) this.#restsUntilMs.delete(key)
    })
  }

  async #rest(key: string): Promise<void> {
    const leftMs = (this.#restsUntilMs.get(key) ?? 0) - this.#clock.monotonicMs()
    if (leftMs > 0) await this.#clock.sleep(leftMs)
  }

  #turn(before: Promise<void>, waitMs: number | undefined): Promise<void> {
    if (waitMs === undefined) return before
    return new Promise((resolve, reject) => {
      const cancel = this.#clock.after(waitMs, () => reject(new QueueTimeoutError('the queue of this key is too long')))
      void before.then(() => {
        cancel()
        resolve()
      })
    })
  }
}
