import type { Clock } from '../../../platform/clock.ts'
import { fail } from '../../../platform/errors.ts'
import { MinuteCounts, secondsLeftOf } from './minute-counts.ts'

/** How often a signed-in person may call the console in a clock minute, over all their sessions. Counted in memory, by each process for itself. */
export class PersonLimit {
  readonly #clock: Clock
  readonly #perMinute: number
  readonly #counts = new MinuteCounts()

  /** `perMinute` is CONSOLE_RPM. */
  constructor(clock: Clock, perMinute: number) {
    this.#clock = clock
    this.#perMinute = perMinute
  }

  /** Counts one request. Throws `rate_limit_exceeded` with the seconds to the end of the minute. */
  count(userId: number): void {
    const nowMs = this.#clock.nowMs()
    const name = String(userId)
    const count = this.#counts.of(name, nowMs)
    if (count >= this.#perMinute)
      throw fail('rate_limit_exceeded', {
        message: 'You have called too often in this minute. Wait for the next one.',
        retryAfterSeconds: secondsLeftOf(nowMs),
      })
    this.#counts.set(name, count + 1)
  }
}
