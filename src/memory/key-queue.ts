import type { Clock } from '../platform/clock.ts'

/** The turn did not come within the time that the caller would wait. */
export class QueueTimeoutError extends Error {
  override readonly name = 'QueueTimeoutError'
}

/** One at a time for each key, first come first served, within this process. */
export class KeyQueue {
  readonly #clock: Clock
  readonly #tails = new Map<string, Promise<void>>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Runs `work` when every earlier one of this key has ended. With `waitMs` it throws QueueTimeoutError when that takes longer; the turn is then passed on. */
  async run<T>(key: string, work: () => Promise<T>, waitMs?: number): Promise<T> {
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
      if (before !== undefined) await this.#turn(before, waitMs)
      return await work()
    } finally {
      pass()
    }
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
