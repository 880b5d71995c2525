/**
 * The state of a shared counter in this process. Integers only.
 *
 * In the database the process has one lease of the counter. In this process the lease is split: lease = idle + held + counted + unflushed.
 */
import type { Clock } from '../../../../platform/clock.ts'
import { endOfIstDayMs, endOfIstMinuteMs, endOfIstMonthMs, istDay, istMinute, istMonth } from '../../../../platform/values/ist-time.ts'
import type { PeriodWindow } from '../../budgets/periods/period.ts'

/** The scopes that a budget can bind, the widest first. */
export const scopes = ['org', 'team', 'workspace', 'member', 'key', 'agent'] as const
export type Scope = (typeof scopes)[number]
/**
 * `spend` counts the month of India for every scope, with or without a budget. `budget` counts the period of a budget that has another one. `running` counts
 * concurrent calls. Its units are held and given back, and never spent. `run_spend` and `run_calls` count the value and the calls of one run. `tpm` counts the
 * tokens of a clock minute.
 */
export type Metric = 'spend' | 'budget' | 'prepaid' | 'rpm' | 'tpm' | 'daily' | 'running' | 'run_spend' | 'run_calls'

/** Returns true when the metric is that of a budget. */
export const isSpend = (metric: string): boolean => metric === 'spend' || metric === 'budget'

/** Returns true when the metric counts what calls are worth: in a budget, or in a run. */
export const isValue = (metric: string): boolean => isSpend(metric) || metric === 'run_spend'

/** Returns true when the metric counts a run. */
export const isOfRun = (metric: string): boolean => metric === 'run_spend' || metric === 'run_calls'

/** Returns true when the metric's amounts are micro-rupees. */
export const isMoney = (metric: Metric): boolean => isValue(metric) || metric === 'prepaid'

/** Returns true when a text names a scope. */
export function isScope(text: string): text is Scope {
  return (scopes as readonly string[]).includes(text)
}

/** The owner of a budget or limit. */
export interface ScopeRef {
  readonly orgId: number
  readonly scope: Scope
  readonly scopeId: string
}

/** The database's reason for a refusal, kept for a moment so that many calls do not ask the same. */
export interface RefusalNote {
  /** The time until which the answer is used, in milliseconds of the monotonic clock. */
  readonly untilMs: number
  /** Needs of at least this amount are refused. A smaller need may still fit in a strict counter. */
  readonly needFrom: bigint
  readonly cap: bigint
  readonly spent: bigint
  /** Held by running calls of all processes. */
  readonly held: bigint
  readonly inDoubt: bigint
}

/** The mutable state of a counter. Only this folder changes it. */
export class Counter {
  readonly orgId: number
  readonly scope: Scope
  readonly scopeId: string
  readonly metric: Metric
  readonly period: string
  readonly endsAtMs: number
  /** The row's id, or null until `ensure` has run. */
  id: bigint | null = null
  cap: bigint | null
  /** The increase beside the cap as the last grant had it, and its end by the clock of the database in Unix milliseconds. */
  extra = 0n
  extraUntilMs = Number.POSITIVE_INFINITY
  /** True: no grant goes beyond the cap. It is so for strict budgets, and for tokens a minute. */
  strict: boolean
  /** The leased and free amount. */
  idle = 0n
  /** The amount in holds of running calls. */
  held = 0n
  /** Used rate units that are not in the journal yet. */
  counted = 0n
  /**
   * Tokens that calls used beyond the lease, and that are not in the journal yet. Below zero, they are tokens that calls had added and did not use.
   */
  over = 0n
  /** The amount released by records that are in the journal and not yet in the database. */
  unflushed = 0n
  /**
   * The spend of the whole counter as far as this process knows: the last read value plus its own settled calls. For a rate it is the used units. It is
   * for `x-br-budget-remaining-inr` and for the headers of rates.
   */
  knownSpent = 0n
  /** Set while an acquire of this counter is in progress. */
  flight: Promise<void> | null = null
  /** The sum of the needs of callers that wait for that acquire. */
  waiting = 0n
  refusal: RefusalNote | null = null
  /** The amount taken since the last request. This demand decides the size of the next slice. */
  taken = 0n
  askedAtMs = 0
  usedAtMs = 0
  /** The size of the last slice, or 0 when it was no larger than the need. */
  slice = 0n
  recalledAtMs = Number.NEGATIVE_INFINITY
  /** True when the commit of an acquire is unknown and the lease must be read again. */
  unsure = false
  /** True when a last call was granted beyond the cap. Nothing of it may serve another call, so all of it goes back when its call ends. */
  overdrawn = false
  /** The part of the last grant that is beyond the cap. */
  beyond = 0n
  /**
   * True when calls may have cost more than they held here and the database may not have that yet. The process then flushes before it asks. It
   * is true at first.
   */
  untold: boolean
  /** True when a rate is counted locally because the database is away. Such a counter is never leased. */
  offline = false

  /** True when the table has dropped the counter. Another one may have taken its place. */
  isForgotten = false

  constructor(ref: ScopeRef, metric: Metric, period: string, endsAtMs: number, cap: bigint | null) {
    this.orgId = ref.orgId
    this.scope = ref.scope
    this.scopeId = ref.scopeId
    this.metric = metric
    this.period = period
    this.endsAtMs = endsAtMs
    this.cap = cap
    this.untold = isMoney(metric) || metric === 'run_calls'
    this.strict = metric === 'tpm'
  }

  get lease(): bigint {
    return this.idle + this.held + this.counted + this.unflushed
  }

  /** True when a unit of a rate is leased and free. */
  get hasUnit(): boolean {
    return this.idle >= 1n
  }

  /** Uses a leased and free unit of a rate. */
  count(nowMs: number): void {
    this.idle -= 1n
    this.counted += 1n
    this.knownSpent += 1n
    this.taken += 1n
    this.usedAtMs = nowMs
  }

  /** Uses tokens, also beyond the lease. The process tells the database before it asks for more. */
  add(tokens: bigint): void {
    const leased = this.idle < tokens ? this.idle : tokens
    this.idle -= leased
    this.counted += leased
    this.knownSpent += tokens
    if (tokens === leased) return
    this.over += tokens - leased
    this.untold = true
  }

  /** Gives back tokens that were added before. */
  takeBack(tokens: bigint): void {
    if (tokens === 0n) return
    this.over -= tokens
    this.knownSpent -= tokens
    this.untold = true
    this.refusal = null
  }

  /** Takes over the database's spend. The spend never falls within a period, but it may be older than the calls that this process has settled. */
  learnSpent(spent: bigint): void {
    if (spent > this.knownSpent) this.knownSpent = spent
  }

  /** The cap with the increase, as far as this process knows. */
  get capWithIncrease(): bigint | null {
    return this.cap === null ? null : this.cap + this.extra
  }

  /** Takes over the increase that a grant was decided by. Returns true when it differs. */
  learnIncrease(extra: bigint, until: Date | null): boolean {
    const untilMs = until?.getTime() ?? Number.POSITIVE_INFINITY
    if (this.extra === extra && this.extraUntilMs === untilMs) return false
    this.extra = extra
    this.extraUntilMs = untilMs
    return true
  }

  /** True when nothing of the counter is in use, so that it can be dropped. */
  get isEmpty(): boolean {
    return this.lease === 0n && this.flight === null && this.waiting === 0n
  }
}

/** Returns the IST period of a metric at a time, and the end of the period. Periods of budgets come from their calendar. */
export function periodOf(metric: Exclude<Metric, 'budget'>, nowMs: number): { period: string; endsAtMs: number } {
  switch (metric) {
    case 'spend':
      return { period: istMonth(nowMs), endsAtMs: endOfIstMonthMs(nowMs) }
    case 'daily':
      return { period: istDay(nowMs), endsAtMs: endOfIstDayMs(nowMs) }
    case 'rpm':
    case 'tpm':
      return { period: istMinute(nowMs), endsAtMs: endOfIstMinuteMs(nowMs) }
    case 'prepaid':
    case 'running':
    case 'run_spend':
    case 'run_calls':
      return { period: 'ever', endsAtMs: Number.POSITIVE_INFINITY }
  }
}

/** Ends the increases whose time is over, and returns their counters. What these have leased must go back before a call takes it. */
export function endIncreases(counters: Iterable<Counter>, nowMs: number): Counter[] {
  const ended = [...counters].filter(({ extraUntilMs }) => extraUntilMs <= nowMs)
  for (const counter of ended) {
    counter.learnIncrease(0n, null)
    // Holds under the higher cap go back when their calls end. The next grant within the cap clears the mark.
    counter.overdrawn = true
  }
  return ended
}

/** A counter of a run, as its row was when it was read. */
export interface RunCounter {
  readonly id: bigint
  /** Null: the run has no cap of this kind. */
  readonly cap: bigint | null
  readonly spent: bigint
}

/** Returns the id under which the counters of a run are kept. No organisation has such an id. */
export const runScopeId = (number: bigint): string => `run/${number}`

const keyOf = (ref: ScopeRef, metric: Metric, period: string): string => `${ref.orgId}|${ref.scope}|${ref.scopeId}|${metric}|${period}`

/** The counters that this process has used, by natural key and by row id. */
export class CounterTable {
  readonly #byKey = new Map<string, Counter>()
  readonly #byId = new Map<bigint, Counter>()
  readonly #clock: Clock

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Returns the counter of the current period, and makes it if it is not known yet. Only a new counter uses `cap`. */
  get(ref: ScopeRef, metric: Exclude<Metric, 'budget'>, nowMs: number, cap: bigint | null): Counter {
    const { period, endsAtMs } = periodOf(metric, nowMs)
    return this.#at(ref, metric, period, endsAtMs, cap)
  }

  /** Returns the counter of a budget in a window of its period, and makes it if it is not known yet. */
  ofBudget(ref: ScopeRef, { name, endsAtMs }: PeriodWindow, cap: bigint | null): Counter {
    return this.#at(ref, 'budget', name, endsAtMs, cap)
  }

  /** Returns the counter of a run, whose row is known. */
  ofRun(orgId: number, number: bigint, metric: 'run_spend' | 'run_calls', { id, cap, spent }: RunCounter, nowMs: number): Counter {
    const counter = this.get({ orgId, scope: 'org', scopeId: runScopeId(number) }, metric, nowMs, cap)
    if (counter.id === null) {
      this.identify(counter, id)
      counter.learnSpent(spent)
    }
    return counter
  }

  #at(ref: ScopeRef, metric: Metric, period: string, endsAtMs: number, cap: bigint | null): Counter {
    const key = keyOf(ref, metric, period)
    let counter = this.#byKey.get(key)
    if (counter === undefined) {
      counter = new Counter(ref, metric, period, endsAtMs, cap)
      this.#byKey.set(key, counter)
    }
    counter.usedAtMs = this.#clock.monotonicMs()
    return counter
  }

  /** Returns the spend counter of a scope in a month, when it is known. */
  spendOf(orgId: number, scope: Scope, scopeId: string, month: string): Counter | undefined {
    return this.#byKey.get(keyOf({ orgId, scope, scopeId }, 'spend', month))
  }

  /** Returns the counter of requests of a scope in a day, when it is known. */
  dailyOf(orgId: number, scope: Scope, scopeId: string, day: string): Counter | undefined {
    return this.#byKey.get(keyOf({ orgId, scope, scopeId }, 'daily', day))
  }

  /** Returns the counter of tokens of a key or an agent in a minute, when it is known. */
  tokensOf(orgId: number, scope: Scope, scopeId: string, minute: string): Counter | undefined {
    return this.#byKey.get(keyOf({ orgId, scope, scopeId }, 'tpm', minute))
  }

  identify(counter: Counter, id: bigint): void {
    counter.id = id
    this.#byId.set(id, counter)
  }

  byId(id: bigint): Counter | undefined {
    return this.#byId.get(id)
  }

  /** Returns the counters of a scope, of any metric and period. */
  ofScope(ref: ScopeRef): Counter[] {
    return [...this.#byKey.values()].filter(c => c.orgId === ref.orgId && c.scope === ref.scope && c.scopeId === ref.scopeId)
  }

  all(): IterableIterator<Counter> {
    return this.#byKey.values()
  }

  forget(counter: Counter): void {
    counter.isForgotten = true
    this.#byKey.delete(keyOf(counter, counter.metric, counter.period))
    if (counter.id !== null) this.#byId.delete(counter.id)
  }

  /** Returns the leases by row id. */
  leases(): Map<bigint, bigint> {
    return new Map([...this.#byId].flatMap(([id, counter]) => (counter.lease > 0n ? [[id, counter.lease] as const] : [])))
  }

  /** Marks all counters after the database was set back. It has lost the records that release these amounts, and the leases must be read again. */
  doubt(released: ReadonlyMap<bigint, bigint>): void {
    for (const [id, counter] of this.#byId) {
      counter.unflushed += released.get(id) ?? 0n
      counter.unsure = true
    }
  }

  /** Drops all counters, because the process is fenced and an adopter owns its leases. */
  clear(): void {
    this.#byKey.clear()
    this.#byId.clear()
  }

  get size(): number {
    return this.#byKey.size
  }
}
