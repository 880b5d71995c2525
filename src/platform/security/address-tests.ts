import type { Clock } from '../clock.ts'
import { fail } from '../errors.ts'

/** Tests of addresses that one organisation may make in a row, those that passed not counted. */
const testsMax = 60
/** One more test is free after this time. */
const testEveryMs = 10_000
/** The most organisations that are remembered; beyond it the one that tested longest ago is dropped. */
const orgsMax = 10_000

/**
 * How often the people of an organisation may let this process test an address that they gave: a store, a server of models, a webhook. The result
 * distinguishes refusals, TLS, timeouts and statuses, so without a rate the test would be a scanner of other people's networks.
 */
export class AddressTests {
  readonly #clock: Pick<Clock, 'monotonicMs'>
  /** Organisation -> when all its tests are free again. */
  readonly #fullAtMs = new Map<number, number>()

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock
  }

  /** Takes one test. Throws `rate_limit_exceeded` with the time to wait. */
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

  /** Gives a test back that passed: it has told nothing but that the address works. */
  passed(orgId: number): void {
    const fullAtMs = this.#fullAtMs.get(orgId)
    if (fullAtMs !== undefined) this.#fullAtMs.set(orgId, fullAtMs - testEveryMs)
  }

  #forgetOldest(): void {
    const [oldest] = this.#fullAtMs.keys()
    if (this.#fullAtMs.size > orgsMax && oldest !== undefined) this.#fullAtMs.delete(oldest)
  }
}
