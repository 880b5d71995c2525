import type { Clock } from '../../../platform/clock.ts'
import { fail } from '../../../platform/errors.ts'
import { MinuteCounts, secondsLeftOf } from './minute-counts.ts'

/** Limits the requests of one signed-in person per clock minute, over all sessions of that person. Each process counts separately, in memory. */
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
