import type { Clock } from '../../platform/clock.ts'
import { fail } from '../../platform/errors.ts'
import type { Secret } from '../../platform/security/secret.ts'
import { probeTimeoutMs } from '../byok/create-byok.ts'
import type { ProbeOutcome } from '../byok/probe.ts'
import { isSandbox } from '../catalog/loading/sandbox.ts'
import type { Provider } from '../providers/provider.ts'

/** The result of the last test of a platform key in this process. */
export interface KeyTest {
  readonly provider: string
  readonly outcome: ProbeOutcome
  readonly testedAt: Date
}

/** A provider for which the operator has set a key. */
export interface KeyedProvider {
  readonly id: string
  readonly name: string
  readonly residency: Provider['residency']
  readonly lastTest: KeyTest | null
}

export interface PlatformKeysDeps {
  readonly clock: Clock
  providers(): ReadonlyMap<string, Provider>
  /** Sends a free request to the provider with the key. It ends within the time limit and does not throw. */
  probe(provider: Provider, key: Secret, timeoutMs: number): Promise<ProbeOutcome>
}

/** The result of one look at the keys of all providers. */
export interface KeyLook {
  readonly provider: Provider
  readonly outcome: ProbeOutcome
}

/** Least time between the beginnings of two tests of one key. It is more than the time limit of a test, so one test of a key runs at a time. */
const everyMs = 20_000

/** How long a start and the doctor wait for a provider. */
const lookMs = 3_000
/** A look tries at most this many keys. */
const lookedAtMax = 50

/** The provider keys of the operator, and their tests. No result contains a part of a key. */
export class PlatformKeys {
  readonly #deps: PlatformKeysDeps
  /** Provider id -> monotonic milliseconds at which its last test began. Its size is bounded by the catalog. */
  readonly #begun = new Map<string, number>()
  readonly #tests = new Map<string, KeyTest>()
  #look: { readonly startedMs: number; readonly done: Promise<readonly KeyLook[]> } | null = null

  constructor(deps: PlatformKeysDeps) {
    this.#deps = deps
  }

  /** Returns the providers that have a platform key, in the order of the catalog. */
  list(): readonly KeyedProvider[] {
    return [...this.#deps.providers().values()]
      .filter(({ platformKey }) => platformKey !== null)
      .map(({ id, name, residency }) => ({ id, name, residency, lastTest: this.#tests.get(id) ?? null }))
  }

  /**
   * Tests the platform key of a provider with a free request. Throws `unknown_provider` when there is no such provider, `unavailable` when it has no key
   * or no address, and `rate_limit_exceeded` when its last test began less than 20 seconds ago.
   */
  async test(providerId: string): Promise<KeyTest> {
    const { clock, providers, probe } = this.#deps
    const provider = providers().get(providerId)
    if (provider === undefined) throw fail('unknown_provider')
    const { platformKey: key } = provider
    if (key === null || provider.baseUrl === '')
      throw fail('unavailable', { message: `${provider.name} has no key and address of the operator, so there is nothing to test.` })
    this.#takeTurn(provider)
    const outcome = await probe(provider, key, probeTimeoutMs)
    const test = { provider: provider.id, outcome, testedAt: new Date(clock.nowMs()) }
    this.#tests.set(provider.id, test)
    return test
  }

  /**
   * Tries each platform key once, all at the same time, and waits for at most 3 seconds. A look that began less than 20 seconds ago is used again. The
   * sandbox and providers without an address are left out. Decision 0756 gives the reasons.
   */
  look(): Promise<readonly KeyLook[]> {
    const nowMs = this.#deps.clock.monotonicMs()
    if (this.#look === null || nowMs - this.#look.startedMs >= everyMs) this.#look = { startedMs: nowMs, done: this.#lookAtAll() }
    return this.#look.done
  }

  #lookAtAll(): Promise<readonly KeyLook[]> {
    const keyed = [...this.#deps.providers().values()].flatMap(provider => {
      const { platformKey: key, baseUrl } = provider
      return key === null || baseUrl === '' || isSandbox(provider) ? [] : [{ provider, key }]
    })
    return Promise.all(keyed.slice(0, lookedAtMax).map(async ({ provider, key }) => ({ provider, outcome: await this.#deps.probe(provider, key, lookMs) })))
  }

  #takeTurn({ id, name }: Provider): void {
    const nowMs = this.#deps.clock.monotonicMs()
    const waitMs = (this.#begun.get(id) ?? Number.NEGATIVE_INFINITY) + everyMs - nowMs
    if (waitMs > 0)
      throw fail('rate_limit_exceeded', {
        message: `The key at ${name} was tested a moment ago: one test every ${everyMs / 1000} s.`,
        retryAfterSeconds: Math.ceil(waitMs / 1000),
      })
    this.#begun.set(id, nowMs)
  }
}
