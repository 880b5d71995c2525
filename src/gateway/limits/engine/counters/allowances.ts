/**
 * Admits calls: rate, daily limit and every budget. While this process has room in all of them, the decision needs no promise and no round trip.
 * Otherwise the database is asked once, for all of them together. Decision 0021 gives the reasons.
 */
import type { Clock } from '../../../../platform/clock.ts'
import { DatabaseUnavailableError } from '../../../../platform/db/db.ts'
import { fail } from '../../../../platform/errors.ts'
import type { BearerPrincipal } from '../../../../platform/security/principal.ts'
import type { Flusher } from '../../journal/flusher.ts'
import type { OrgLimitsView } from '../../org-limits.ts'
import { type Acquirer, FencedError, type Held } from '../acquire.ts'
import type { AdmissionRequest, ChargedEvent, Limits, Permit, RunHold } from '../admission.ts'
import { type Binding, type Bindings, runCountersOf, type TrialCap, trialScopeId } from '../bindings.ts'
import { CallPermit, type PermitTools } from '../permit.ts'
import type { ProcessRegistry } from '../processes.ts'
import { type Refused, refusalError } from '../refusal.ts'
import { type Counter, type CounterTable, endIncreases, isOfRun, isValue } from './counter-state.ts'
import { RequestsLeft } from './requests-left.ts'
import { hasTokenCap, tokensHeld } from './token-rates.ts'

/** The most times that a call begins again because its process was fenced or its counters were replaced. */
const roundsMax = 4
/** The most rate windows in memory: one for each key that called in this minute. */
const windowsMax = 50_000
/** The time for which a call waits for an answer of a database that was silent for OFFLINE_MAX. The project chose the number. */
const touchWaitMs = 2000

export interface AllowancesOptions<E extends ChargedEvent> {
  readonly clock: Clock
  readonly registry: ProcessRegistry
  readonly counters: CounterTable
  readonly bindings: Bindings
  readonly acquirer: Acquirer
  readonly flusher: Flusher<E>
  readonly permitTools: PermitTools<E>
  /** Returns the limits of a whole organisation. */
  readonly orgLimits: (orgId: number) => Promise<Pick<OrgLimitsView, 'rpm' | 'running' | 'streams'>>
  /** Returns the cap of free calls. Null when the organisation has none. */
  readonly trialOf: (orgId: number) => Promise<TrialCap | null>
  /** Gives back the idle parts of counters immediately. */
  readonly giveBack: (counters: readonly Counter[]) => Promise<void>
  /** Makes a beat, or registers again when this process was fenced. Throws when the database is away. */
  readonly getInTouch: () => Promise<void>
  /** Is called when the cap of a run in the database is not the one that the call knows. */
  readonly onRunUnknown?: () => void
}

/** The rate counters of a key and of its organisation. A limit that is not set has no counter. */
interface RateWindow {
  readonly limit: number | null
  readonly own: Counter | null
  readonly org: Counter | null
  /** The key's requests of the day, for the headers of rates. */
  daily: Counter | undefined
}

/** The implementation of `Limits`. */
export class Allowances<E extends ChargedEvent> implements Limits<E> {
  readonly #options: AllowancesOptions<E>
  readonly #windows = new Map<number, RateWindow>()
  /** The caps of free calls by organisation, for the headers of rates. */
  readonly #trials = new Map<number, TrialCap>()
  readonly #left = new RequestsLeft()
  #isStopping = false

  constructor(options: AllowancesOptions<E>) {
    this.#options = options
  }

  /** Refuses every call from now on, because the process drains. */
  refuseNew(): void {
    this.#isStopping = true
  }

  takeRate(principal: BearerPrincipal): void | Promise<void> {
    const { registry, clock } = this.#options
    const window = this.#windows.get(principal.keyId)
    if (window === undefined || window.limit !== principal.limits.rpmLimit) return this.#takeRateSlow(principal)
    const { own, org } = window
    if (own === null && org === null) return registry.isInTouch ? undefined : this.#touch()
    const endsAtMs = (own ?? (org as Counter)).endsAtMs
    if (registry.nowMs() >= endsAtMs || own?.hasUnit === false || org?.hasUnit === false) return this.#takeRateSlow(principal)
    const nowMs = clock.monotonicMs()
    own?.count(nowMs)
    org?.count(nowMs)
  }

  admit(request: AdmissionRequest): Permit<E> | Promise<Permit<E>> {
    const { registry, bindings, clock, acquirer, flusher } = this.#options
    const nowMs = registry.nowMs()
    const monotonicMs = clock.monotonicMs()
    if (registry.isInTouch && !this.#isStopping && !flusher.isFull) {
      const binding = bindings.peek(request, nowMs, monotonicMs)
      if (binding !== null) {
        const needs = needsOf(binding, request)
        if (acquirer.take(binding.counters, needs, monotonicMs)) return this.#permit(request, nowMs, binding, { amounts: needs, beyondUinr: null })
      }
    }
    return this.#admitSlow(request)
  }

  /** Drops the rate windows, whose counters are void. */
  reset(): void {
    this.#windows.clear()
    this.#trials.clear()
  }

  /** Returns what the limits of the caller leave. Null without limits. The object is valid until the next call. */
  requestsLeft({ orgId, keyId, limits: { rpmLimit, dailyLimit }, isTrial, policies }: BearerPrincipal): RequestsLeft | null {
    const window = this.#windows.get(keyId)
    const ofOrg = window?.org ?? null
    const trial = isTrial === true ? this.#trials.get(orgId) : undefined
    if (rpmLimit === null && dailyLimit === null && ofOrg === null && trial === undefined && !hasTokenCap(policies)) return null
    const { registry, clock, counters } = this.#options
    const left = this.#left
    const monotonicMs = clock.monotonicMs()
    left.begin(registry.nowMs())
    if (rpmLimit !== null) left.minute.note(rpmLimit, window?.own, monotonicMs)
    if (ofOrg !== null) left.minute.note(Number(ofOrg.cap), ofOrg, monotonicMs)
    if (dailyLimit !== null) left.day.note(dailyLimit, this.#dailyOf(orgId, keyId, window, left), monotonicMs)
    if (trial !== undefined) left.day.note(trial.callsMost, counters.dailyOf(trial.founder, 'org', trialScopeId, left.dayText), monotonicMs)
    for (const { owner, ownerId, tpmLimit } of policies)
      if (tpmLimit !== null && tpmLimit !== undefined)
        left.tokens.note(tpmLimit, counters.tokensOf(orgId, owner, String(ownerId), left.minuteText), monotonicMs)
    return left
  }

  /** Returns the counter of the day. The window keeps it, so that a call makes no text to find it. */
  #dailyOf(orgId: number, keyId: number, window: RateWindow | undefined, { day, dayText }: RequestsLeft): Counter | undefined {
    const kept = window?.daily
    if (kept !== undefined && !kept.isForgotten && kept.endsAtMs === day.endsAtMs) return kept
    const daily = this.#options.counters.dailyOf(orgId, 'key', String(keyId), dayText)
    if (window !== undefined) window.daily = daily
    return daily
  }

  #permit(request: AdmissionRequest, nowMs: number, binding: Binding, { amounts, beyondUinr }: Held): Permit<E> {
    return new CallPermit(this.#options.permitTools, request.eventId, nowMs, request.needUinr, {
      counters: binding.counters,
      amounts,
      beyondUinr,
      shown: binding.shown ?? binding.counters,
      charge: binding.charge,
      capsVersion: binding.version,
      countsTokens: binding.tokens.length > 0,
      hasRun: binding.run !== null,
    })
  }

  async #admitSlow(request: AdmissionRequest): Promise<Permit<E>> {
    const { registry, bindings, acquirer, flusher } = this.#options
    if (this.#isStopping) throw fail('shutting_down')
    if (flusher.isFull) throw fail('journal_full')
    if (!registry.isInTouch) await this.#touch()
    // The amount that a strict budget holds when the worst case does not fit and the call can be bound.
    let boundUinr: bigint | null = null
    let binding: Binding | null = null
    for (let round = 1; ; round++) {
      try {
        const nowMs = registry.nowMs()
        const { orgId } = request.principal
        const { running: orgRunning } = await this.#options.orgLimits(orgId)
        const trial = request.isFree === true ? await this.#options.trialOf(orgId) : null
        if (trial !== null) this.#rememberTrial(orgId, trial)
        if (request.run) await this.#followRun(orgId, request.run, nowMs)
        binding = await bindings.load(request, nowMs, orgRunning, trial)
        const { dailyLimit } = binding
        const daily = binding.counters[0]
        if (dailyLimit !== null && daily !== undefined) await this.#follow(daily, dailyLimit)
        for (const [i, { limit }] of binding.toolRates.entries()) await this.#follow(binding.counters[i] as Counter, limit)
        // The counters of both kinds of caps are in their order, before the one of the organisation.
        const caps = [...binding.tokens, ...binding.running]
        const capsAt = binding.counters.length - caps.length - (orgRunning === null ? 0 : 1)
        for (const [i, { cap }] of caps.entries()) {
          const counter = binding.counters[capsAt + i]
          if (counter !== undefined) await this.#follow(counter, cap)
        }
        const ofOrg = binding.counters.at(-1)
        if (orgRunning !== null && ofOrg !== undefined) await this.#follow(ofOrg, orgRunning)
        const ended = endIncreases(binding.counters, nowMs)
        if (ended.length > 0) await this.#options.giveBack(ended)
        const needs = needsOf(binding, request, boundUinr)
        const answer = await acquirer.obtain(binding.counters, needs, false)
        if ('amounts' in answer) {
          const permit = this.#permit(request, nowMs, binding, answer)
          const beyond = request.isTool === true ? beyondCap(binding, answer) : null
          if (beyond === null) return permit
          permit.release()
          throw refusalError(beyond, nowMs, binding.counters, request.run)
        }
        const left: bigint | null = round < roundsMax ? strictlyLeft(answer, request, boundUinr) : null
        if (left === null && isOfRun(answer.counter.metric) && answer.note.cap !== answer.counter.capWithIncrease) this.#options.onRunUnknown?.()
        if (left === null) throw refusalError(answer, nowMs, binding.counters, request.run)
        boundUinr = left
      } catch (error) {
        // The counters of this binding are void.
        if (error instanceof FencedError) binding = null
        if (error instanceof FencedError && round < roundsMax) continue
        const permit = error instanceof DatabaseUnavailableError && binding !== null ? this.#admitOffline(request, binding) : null
        if (permit !== null) return permit
        throw asUnavailable(error)
      }
    }
  }

  /**
   * Admits a call while the database is away, when only its tokens a minute have no lease yet. This process serves its share of the limit, once. Returns null
   * when the call needs more.
   */
  #admitOffline(request: AdmissionRequest, binding: Binding): Permit<E> | null {
    const { registry, acquirer, clock } = this.#options
    if (binding.tokens.length === 0) return null
    const needs = needsOf(binding, request).map((need, i) => {
      const counter = binding.counters[i] as Counter
      if (counter.metric !== 'tpm' || (counter.id !== null && !counter.offline)) return need
      const share = BigInt(Math.floor(Number(counter.cap) / registry.live))
      if (!counter.offline) {
        counter.offline = true
        counter.idle = share
      }
      return tokensHeld(need < share ? need : share, request)
    })
    const nowMs = registry.nowMs()
    if (nowMs >= binding.validUntilMs || !acquirer.take(binding.counters, needs, clock.monotonicMs())) return null
    return this.#permit(request, nowMs, binding, { amounts: needs, beyondUinr: null })
  }

  async #takeRateSlow(principal: BearerPrincipal): Promise<void> {
    const { registry, acquirer } = this.#options
    if (!registry.isInTouch) await this.#touch()
    for (let round = 1; ; round++) {
      const limits = await this.#ratesOf(principal)
      const nowMs = registry.nowMs()
      const window = this.#windowAt(principal, limits, nowMs)
      const counters = [window.own, window.org].filter(counter => counter !== null)
      if (counters.length === 0) return this.#remember(principal.keyId, window)
      try {
        for (const counter of counters) await this.#follow(counter, Number(counter === window.org ? limits.org : limits.own))
        const answer = await acquirer.obtain(
          counters,
          counters.map(() => 1n),
          false,
        )
        if ('counter' in answer) {
          // The headers of the refusal show the window.
          this.#remember(principal.keyId, window)
          throw refusalError(answer, nowMs)
        }
        for (const counter of counters) {
          counter.held -= 1n
          counter.counted += 1n
          counter.knownSpent += 1n
        }
        return this.#remember(principal.keyId, window)
      } catch (error) {
        if (error instanceof FencedError && round < roundsMax) continue
        if (error instanceof DatabaseUnavailableError && this.#countOffline(counters)) return this.#remember(principal.keyId, window)
        throw asUnavailable(error)
      }
    }
  }

  async #ratesOf({ orgId, limits }: BearerPrincipal): Promise<{ own: number | null; org: number | null }> {
    try {
      return { own: limits.rpmLimit, org: (await this.#options.orgLimits(orgId)).rpm }
    } catch (error) {
      throw asUnavailable(error)
    }
  }

  #windowAt({ orgId, keyId, limits }: BearerPrincipal, rates: { own: number | null; org: number | null }, nowMs: number): RateWindow {
    const { counters } = this.#options
    const at = (scope: 'key' | 'org', id: number, limit: number | null): Counter | null =>
      limit === null ? null : counters.get({ orgId, scope, scopeId: String(id) }, 'rpm', nowMs, BigInt(limit))
    return { limit: limits.rpmLimit, own: at('key', keyId, rates.own), org: at('org', orgId, rates.org), daily: undefined }
  }

  /** Updates a counter to its owner's changed limit. The lease of a higher limit goes back. */
  async #follow(counter: Counter, limit: number): Promise<void> {
    const cap = BigInt(limit)
    if (counter.cap === cap) return
    const isLower = counter.cap !== null && cap < counter.cap
    counter.cap = cap
    counter.refusal = null
    // Calls that run under the higher cap leave nothing to the next call. The next grant within the cap clears the mark.
    if (isLower && counter.metric === 'running') counter.overdrawn = true
    await this.#options.acquirer.bringCap(counter)
    if (isLower) await this.#options.giveBack([counter])
  }

  /** Takes over changed caps of a run, which its row has already. The lease of a higher cap goes back. */
  async #followRun(orgId: number, run: RunHold, nowMs: number): Promise<void> {
    for (const counter of runCountersOf(this.#options.counters, orgId, run, nowMs)) {
      const { cap } = counter.metric === 'run_calls' ? run.calls : run.spend
      if (counter.cap === cap && counter.strict === run.strict) continue
      const isLower = counter.cap !== null && cap !== null && cap < counter.cap
      counter.cap = cap
      counter.strict = run.strict
      counter.refusal = null
      if (!isLower) continue
      counter.overdrawn = true
      await this.#options.giveBack([counter])
    }
  }

  /**
   * Returns the counters that bind work of hours, with a changed daily limit and changed caps of its run taken over. It has no counter of concurrent calls of
   * the organisation, so no call gets this binding.
   */
  async bindLasting(request: AdmissionRequest): Promise<Binding> {
    const nowMs = this.#options.registry.nowMs()
    if (request.run) await this.#followRun(request.principal.orgId, request.run, nowMs)
    const binding = await this.#options.bindings.load(request, nowMs, null, null, false)
    const daily = binding.counters[0]
    if (binding.dailyLimit !== null && daily !== undefined) await this.#follow(daily, binding.dailyLimit)
    return binding
  }

  /** Counts locally while the database is away, in a minute without a lease. This process serves its share of the limit, once. */
  #countOffline(counters: readonly Counter[]): boolean {
    for (const counter of counters) {
      if (counter.id !== null || counter.offline) continue
      counter.offline = true
      counter.idle = BigInt(Math.floor(Number(counter.cap) / this.#options.registry.live))
    }
    if (!counters.every(counter => counter.hasUnit)) return false
    for (const counter of counters) counter.count(this.#options.clock.monotonicMs())
    return true
  }

  /**
   * Holds one of the streams that an organisation may have open, over all processes. Returns the function that gives it back, or null when all
   * are open. Throws `database_unavailable`.
   */
  async holdStream(orgId: number): Promise<(() => void) | null> {
    const { registry, acquirer, counters, giveBack } = this.#options
    const cap = (await this.#options.orgLimits(orgId)).streams
    if (cap === null) return () => undefined
    if (!registry.isInTouch) await this.#touch()
    for (let round = 1; ; round++) {
      try {
        const counter = counters.get({ orgId, scope: 'org', scopeId: `${orgId}/streams` }, 'running', registry.nowMs(), BigInt(cap))
        await this.#follow(counter, cap)
        const { generation } = acquirer
        if ('counter' in (await acquirer.obtain([counter], [1n], false))) return null
        return once(() => {
          // A fenced process has no leases any more.
          if (generation !== acquirer.generation) return
          counter.held -= 1n
          counter.idle += 1n
          counter.refusal = null
          if (acquirer.returnsAtOnce(counter) || counter.overdrawn) void giveBack([counter]).catch(() => undefined)
        })
      } catch (error) {
        if (error instanceof FencedError && round < roundsMax) continue
        throw asUnavailable(error)
      }
    }
  }

  #remember(keyId: number, window: RateWindow): void {
    if (this.#windows.size >= windowsMax) this.#windows.clear()
    this.#windows.set(keyId, window)
  }

  #rememberTrial(orgId: number, trial: TrialCap): void {
    if (this.#trials.size >= windowsMax) this.#trials.clear()
    this.#trials.set(orgId, trial)
  }

  /** Gets an answer from the database, or refuses. A silent database counts as away. */
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
 * Returns the need in each counter. The daily limit, the calls of a run and a cap of concurrent calls need one unit. The prepaid balance needs the amount that
 * may be debited. A strict budget needs the worst case, or the smaller amount to which the call is bound. Any other budget, and the cap of a run, needs the first
 * hold. Such a need is never zero, so that an exhausted budget also stops free calls. A limit of tokens a minute needs the tokens of that hold.
 */
function needsOf(binding: Binding, request: AdmissionRequest, boundUinr: bigint | null = null): bigint[] {
  const { needUinr, worstUinr, debitUinr } = request
  const need = atLeastOne(needUinr)
  return binding.counters.map(({ metric, strict, cap }) => {
    if (metric === 'prepaid') return atLeastOne(debitUinr ?? 0n)
    if (metric === 'tpm') return tokensHeld(cap, request)
    if (!isValue(metric)) return 1n
    if (strict && boundUinr !== null) return boundUinr
    return strict && worstUinr > need ? worstUinr : need
  })
}

/** Returns the rest of a strict budget that refused, for a call that can be bound to it. Null when the rest is too small or when another counter refused. */
function strictlyLeft({ counter: { metric, strict }, note }: Refused, { leastUinr }: AdmissionRequest, boundUinr: bigint | null): bigint | null {
  if (!isValue(metric) || !strict || leastUinr === undefined) return null
  const left = note.cap - note.spent - note.held - note.inDoubt
  return left > 0n && left >= leastUinr && (boundUinr === null || left < boundUinr) ? left : null
}

/** Returns the refusal by the first budget that holds beyond its cap. Null when every cap covers its amount. */
function beyondCap({ counters }: Binding, { beyondUinr }: Held): Refused | null {
  const at = beyondUinr?.findIndex((beyond, i) => beyond > 0n && isValue(counters[i]?.metric ?? '')) ?? -1
  const counter = counters[at]
  if (counter === undefined) return null
  return { counter, note: { untilMs: 0, needFrom: 0n, cap: counter.cap ?? 0n, spent: counter.knownSpent, held: 0n, inDoubt: 0n } }
}

const atLeastOne = (uinr: bigint): bigint => (uinr > 0n ? uinr : 1n)

function once(work: () => void): () => void {
  let isDone = false
  return () => {
    if (isDone) return
    isDone = true
    work()
  }
}

function asUnavailable(error: unknown): unknown {
  return error instanceof DatabaseUnavailableError || error instanceof FencedError ? fail('database_unavailable', { cause: error }) : error
}
