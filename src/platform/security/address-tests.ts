import type { Clock } from '../clock.ts'
import { fail } from '../errors.ts'

/** Number of address tests that one organisation may make in a row. Passed tests do not count. */
const testsMax = 60
/** One more test is available after this time. */
const testEveryMs = 10_000
/** Maximum number of organisations that are remembered. Above this number, the organisation whose last test is oldest is dropped. */
const orgsMax = 10_000

/**
 * Limits how often an organisation may make this process test an address: a store, a model server or a webhook. The result of a test distinguishes
 * refusals, TLS errors, timeouts and statuses. Without a limit, a caller could use the tests to scan other people's networks.
 */
export class AddressTests {
  readonly #clock: Pick<Clock, 'monotonicMs'>
  /** Organisation -> monotonic milliseconds at which all its tests are available again. */
  readonly #fullAtMs = new Map<number, number>()

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock
  }

  /** Uses one test. Throws `rate_limit_exceeded` with the time to wait. */
  take(orgId: number): void {
    const nowMs = this.#clock.monotonicMs()
    const fullAtMs = Math.max(this.#fullAtMs.get(orgId) ?? nowMs, nowMs) + testEveryMs
    const waitMs = fullAtMs - nowMs - testsMax * testEveryMs
    if (waitMs > 0)
      throw fail('rate_limit_exceeded', {
        message: `Too many tests of addresses: an organisation has ${testsMax} in a row, and one more every ${testEveryMs / 1000} s.`,
        retryAfterSeconds: Math.ceil(waitMs / 1000),
      })
    this.#fullAtMs.delete(orgId)
    this.#fullAtMs.set(orgId, fullAtMs)
    this.#forgetOldest()
  }

  /** Gives a passed test back, because it reveals only that the address works. */
  passed(orgId: number): void {
    const fullAtMs = this.#fullAtMs.get(orgId)
    if (fullAtMs !== undefined) this.#fullAtMs.set(orgId, fullAtMs - testEveryMs)
  }

  #forgetOldest(): void {
    const [oldest] = this.#fullAtMs.keys()
    if (this.#fullAtMs.size > orgsMax && oldest !== undefined) this.#fullAtMs.delete(oldest)
  }
}
