/**
 * Admission: rate, daily limit and every budget of a call. While this process has room in all of them, a decision takes no promise and
 * no round trip; else the database is asked once, for all of them together.
 */
import type { Clock } from '../../platform/clock.ts'
import { DatabaseUnavailableError } from '../../platform/db.ts'
import { fail } from '../../platform/errors.ts'
import type { BearerPrincipal } from '../../platform/principal.ts'
import { type Acquirer, FencedError } from './acquire.ts'
import type { AdmissionRequest, ChargedEvent, Limits, Permit } from './admission.ts'
import type { Binding, Bindings } from './bindings.ts'
import type { Counter, CounterTable } from './counter-state.ts'
import type { Flusher } from './flusher.ts'
import { CallPermit, type PermitTools } from './permit.ts'
import type { ProcessRegistry } from './processes.ts'
import { refusalError } from './refusal.ts'

/** How often a call begins again because its process was fenced or its counters were replaced while it waited. */
const roundsMax = 4
/** Rate windows that are remembered; one per key that called in this minute. */
const windowsMax = 50_000
/** How long a call waits for a sign of life of a database that was silent for OFFLINE_MAX. Ours. */
const touchWaitMs = 2000

export interface AllowancesOptions<E extends ChargedEvent> {
  readonly clock: Clock
  readonly registry: ProcessRegistry
  readonly counters: CounterTable
  readonly bindings: Bindings
  readonly acquirer: Acquirer
  readonly flusher: Flusher<E>
  readonly permitTools: PermitTools<E>
  /** Gives idle parts of counters back now. */
  readonly giveBack: (counters: readonly Counter[]) => Promise<void>
  /** A beat, or a new registration when this process was fenced. Throws when the database is away. */
  readonly getInTouch: () => Promise<void>
}

interface RateWindow {
  readonly limit: number
  readonly counter: Counter
}

/** The engine behind `Limits`. */
export class Allowances<E extends ChargedEvent> implements Limits<E> {
  readonly #options: AllowancesOptions<E>
  readonly #windows = new Map<number, RateWindow>()
  #isStopping = false

  constructor(options: AllowancesOptions<E>) {
    this.#options = options
  }

  /** From now on every call is refused: the process drains. */
  refuseNew(): void {
    this.#isStopping = true
  }

  takeRate(principal: BearerPrincipal): void | Promise<void> {
    const { registry } = this.#options
    const limit = principal.limits.rpmLimit
    if (limit === null) return registry.isInTouch ? undefined : this.#touch()
    const window = this.#windows.get(principal.keyId)
    if (window === undefined || window.limit !== limit || window.counter.idle < 1n || registry.nowMs() >= window.counter.endsAtMs)
      return this.#takeRateSlow(principal, limit)
    const { counter } = window
    counter.idle -= 1n
    counter.counted += 1n
    counter.taken += 1n
    counter.usedAtMs = this.#options.clock.monotonicMs()
  }

  admit(request: AdmissionRequest): Permit<E> | Promise<Permit<E>> {
    const { registry, bindings, clock, acquirer, flusher } = this.#options
    const nowMs = registry.nowMs()
    const monotonicMs = clock.monotonicMs()
    if (registry.isInTouch && !this.#isStopping && !flusher.isFull) {
      const binding = bindings.peek(request, nowMs, monotonicMs)
      if (binding !== null) {
        const needs = needsOf(binding, request)
        if (acquirer.take(binding.counters, needs, monotonicMs)) return this.#permit(request, nowMs, binding, needs)
      }
    }
    return this.#admitSlow(request)
  }

  /** Forgets the rate windows: their counters are void. */
  reset(): void {
    this.#windows.clear()
  }

  #permit(request: AdmissionRequest, nowMs: number, binding: Binding, amounts: readonly bigint[]): Permit<E> {
    return new CallPermit(this.#options.permitTools, request.eventId, nowMs, request.needUinr, { counters: binding.counters, amounts, charge: binding.charge })
  }

  async #admitSlow(request: AdmissionRequest): Promise<Permit<E>> {
    const { registry, bindings, acquirer, flusher } = this.#options
    if (this.#isStopping) throw fail('shutting_down')
    if (flusher.isFull) throw fail('journal_full')
    if (!registry.isInTouch) await this.#touch()
    for (let round = 1; ; round++) {
      try {
        const nowMs = registry.nowMs()
        const binding = await bindings.load(request, nowMs)
        const { dailyLimit } = request.principal.limits
        const daily = binding.counters[0]
        if (dailyLimit !== null && daily !== undefined) await this.#follow(daily, dailyLimit)
        for (const [i, { cap }] of binding.running.entries()) {
          const counter = binding.counters[binding.counters.length - binding.running.length + i]
          if (counter !== undefined) await this.#follow(counter, cap)
        }
        const needs = needsOf(binding, request)
        const answer = await acquirer.obtain(binding.counters, needs, false)
        if (Array.isArray(answer)) return this.#permit(request, nowMs, binding, answer)
        throw refusalError(answer as Exclude<typeof answer, readonly bigint[]>, nowMs, binding.counters)
      } catch (error) {
        if (error instanceof FencedError && round < roundsMax) continue
        throw asUnavailable(error)
      }
    }
  }

  async #takeRateSlow(principal: BearerPrincipal, limit: number): Promise<void> {
    const { registry, acquirer, counters } = this.#options
    if (!registry.isInTouch) await this.#touch()
    for (let round = 1; ; round++) {
      const nowMs = registry.nowMs()
      const counter = counters.get({ orgId: principal.orgId, scope: 'key', scopeId: String(principal.keyId) }, 'rpm', nowMs, BigInt(limit))
      try {
        await this.#follow(counter, limit)
        const answer = await acquirer.obtain([counter], [1n], false)
        if (!Array.isArray(answer)) throw refusalError(answer as Exclude<typeof answer, readonly bigint[]>, nowMs)
        counter.held -= 1n
        counter.counted += 1n
        this.#remember(principal.keyId, { limit, counter })
        return
      } catch (error) {
        if (error instanceof FencedError && round < roundsMax) continue
        if (error instanceof DatabaseUnavailableError && this.#countOffline(counter, limit)) return this.#remember(principal.keyId, { limit, counter })
        throw asUnavailable(error)
      }
    }
  }

  /** Brings a changed limit of the owner to its counter; what was leased under a higher one goes back. */
  async #follow(counter: Counter, limit: number): Promise<void> {
    const cap = BigInt(limit)
    if (counter.cap === cap) return
    const isLower = counter.cap !== null && cap < counter.cap
    counter.cap = cap
    counter.refusal = null
    // Calls that run under the higher cap leave nothing to the next call; the next grant that fits says otherwise.
    if (isLower && counter.metric === 'running') counter.overdrawn = true
    await this.#options.acquirer.bringCap(counter)
    if (isLower) await this.#options.giveBack([counter])
  }

  /** The database is away and this minute was never leased: this process serves its share of the limit, once. */
  #countOffline(counter: Counter, limit: number): boolean {
    if (counter.id !== null) return false
    if (!counter.offline) {
      counter.offline = true
      counter.idle = BigInt(Math.floor(limit / this.#options.registry.live))
    }
    if (counter.idle < 1n) return false
    counter.idle -= 1n
    counter.counted += 1n
    return true
  }

  #remember(keyId: number, window: RateWindow): void {
    if (this.#windows.size >= windowsMax) this.#windows.clear()
    this.#windows.set(keyId, window)
  }

  /** Hears from the database again, or refuses: a silent database is an absent one. */
  #touch(): Promise<void> {
    const { clock, getInTouch } = this.#options
    return new Promise((resolve, reject) => {
      const cancel = clock.after(touchWaitMs, () => reject(fail('database_unavailable')))
      getInTouch()
        .then(resolve, error => reject(asUnavailable(error)))
        .finally(cancel)
    })
  }
}

/**
 * What each counter must hold: one unit of the daily limit and of a cap of calls at once, the worst case of a strict budget, what may be
 * debited of the prepaid balance, else the first hold. Never zero, so that an exhausted budget also stops what is free.
 */
function needsOf(binding: Binding, { needUinr, worstUinr, debitUinr }: AdmissionRequest): bigint[] {
  const need = atLeastOne(needUinr)
  return binding.counters.map(({ metric, strict }) => {
    if (metric === 'prepaid') return atLeastOne(debitUinr ?? 0n)
    if (metric !== 'spend') return 1n
    return strict && worstUinr > need ? worstUinr : need
  })
}

const atLeastOne = (uinr: bigint): bigint => (uinr > 0n ? uinr : 1n)

function asUnavailable(error: unknown): unknown {
  return error instanceof DatabaseUnavailableError || error instanceof FencedError ? fail('database_unavailable', { cause: error }) : error
}
