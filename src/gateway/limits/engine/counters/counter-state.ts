/**
 * One shared counter as this process sees it. Integers only.
 *
 * In the database the process has one lease of the counter; here it is split: lease = idle + held + counted + unflushed.
 */
import type { Clock } from '../../../../platform/clock.ts'
import { endOfIstDayMs, endOfIstMinuteMs, endOfIstMonthMs, istDay, istMinute, istMonth } from '../../../../platform/values/ist-time.ts'

/** What a budget can bind, widest first. */
export const scopes = ['org', 'team', 'workspace', 'member', 'key', 'agent'] as const
export type Scope = (typeof scopes)[number]
/** 'running' counts concurrent calls: units are held and given back, never spent. */
export type Metric = 'spend' | 'prepaid' | 'rpm' | 'daily' | 'running'

/** Amounts of these are micro-rupees. */
export const isMoney = (metric: Metric): boolean => metric === 'spend' || metric === 'prepaid'

/** Whether a text names a scope. */
export function isScope(text: string): text is Scope {
  return (scopes as readonly string[]).includes(text)
}

/** A budget's or limit's owner. */
export interface ScopeRef {
  readonly orgId: number
  readonly scope: Scope
  readonly scopeId: string
}

/** Why the database refused, kept for a moment so that a crowd does not ask the same thing. */
export interface RefusalNote {
  /** Monotonic ms until which the answer is used. */
  readonly untilMs: number
  /** Needs of at least so much are refused; for a strict counter smaller ones may still fit. */
  readonly needFrom: bigint
  readonly cap: bigint
  readonly spent: bigint
  /** Held by running calls, of all processes. */
  readonly held: bigint
  readonly inDoubt: bigint
}

/** Mutable state of a counter. Only this folder touches it. */
export class Counter {
  readonly orgId: number
  readonly scope: Scope
  readonly scopeId: string
  readonly metric: Metric
  readonly period: string
  readonly endsAtMs: number
  /** Row id; null until the counter was ensured. */
  id: bigint | null = null
  /** The id as text: every call writes it, so it is made once. */
  idText = ''
  cap: bigint | null
  strict = false
  /** Leased and free. */
  idle = 0n
  /** In holds of running calls. */
  held = 0n
  /** Rate units taken and not yet in the journal. */
  counted = 0n
  /** Released by records that are in the journal and not yet in the database. */
  unflushed = 0n
  /** What the whole counter has spent as far as this process knows: what it read and what it has settled itself. For `x-br-budget-remaining-inr`. */
  knownSpent = 0n
  /** Set while an acquire of this counter is under way. */
  flight: Promise<void> | null = null
  /** Σ needs of callers that wait for that flight. */
  waiting = 0n
  refusal: RefusalNote | null = null
  /** Taken since the last ask: the demand that sizes the next slice. */
  taken = 0n
  askedAtMs = 0
  usedAtMs = 0
  /** Size of the last slice, 0 when it was no more than the need. */
  slice = 0n
  recalledAtMs = Number.NEGATIVE_INFINITY
  /** The commit of an acquire is unknown: the lease has to be read again. */
  unsure = false
  /** A last call was granted beyond the cap: nothing of it may serve another call, so all of it goes back when its call ends. */
  overdrawn = false
  /** Calls may have cost what nobody held here, and the database may not know it yet: it is told before it is asked. So it is at first. */
  untold: boolean
  /** Counts a rate locally because the database is away; never leased. */
  offline = false

  constructor(ref: ScopeRef, metric: Metric, period: string, endsAtMs: number, cap: bigint | null) {
    this.orgId = ref.orgId
    this.scope = ref.scope
    this.scopeId = ref.scopeId
    this.metric = metric
    this.period = period
    this.endsAtMs = endsAtMs
    this.cap = cap
    this.untold = isMoney(metric)
  }

  get lease(): bigint {
    return this.idle + this.held + this.counted + this.unflushed
  }

  /** Whether a unit of a rate is leased and free. */
  get hasUnit(): boolean {
    return this.idle >= 1n
  }

  /** Uses a unit of a rate that is leased and free. */
  count(nowMs: number): void {
    this.idle -= 1n
    this.counted += 1n
    this.taken += 1n
    this.usedAtMs = nowMs
  }

  /** What the database said. It never falls within a period, and may lag behind what this process has settled. */
  learnSpent(spent: bigint): void {
    if (spent > this.knownSpent) this.knownSpent = spent
  }

  /** True when nothing of it is in use, so that it can be forgotten. */
  get isEmpty(): boolean {
    return this.lease === 0n && this.flight === null && this.waiting === 0n
  }
}

/** The IST period of a metric that an instant belongs to, and when it ends. */
export function periodOf(metric: Metric, nowMs: number): { period: string; endsAtMs: number } {
  switch (metric) {
    case 'spend':
      return { period: istMonth(nowMs), endsAtMs: endOfIstMonthMs(nowMs) }
    case 'daily':
      return { period: istDay(nowMs), endsAtMs: endOfIstDayMs(nowMs) }
    case 'rpm':
      return { period: istMinute(nowMs), endsAtMs: endOfIstMinuteMs(nowMs) }
    case 'prepaid':
    case 'running':
      return { period: 'ever', endsAtMs: Number.POSITIVE_INFINITY }
  }
}

const keyOf = (ref: ScopeRef, metric: Metric, period: string): string => `${ref.orgId}|${ref.scope}|${ref.scopeId}|${metric}|${period}`

/** The counters that this process has touched, by natural key and by row id. */
export class CounterTable {
  readonly #byKey = new Map<string, Counter>()
  readonly #byId = new Map<bigint, Counter>()
  readonly #clock: Clock

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** The counter of that period, made when it is not known yet. `cap` is used for a new one only. */
  get(ref: ScopeRef, metric: Metric, nowMs: number, cap: bigint | null): Counter {
    const { period, endsAtMs } = periodOf(metric, nowMs)
    const key = keyOf(ref, metric, period)
    let counter = this.#byKey.get(key)
    if (counter === undefined) {
      counter = new Counter(ref, metric, period, endsAtMs, cap)
      this.#byKey.set(key, counter)
    }
    counter.usedAtMs = this.#clock.monotonicMs()
    return counter
  }

  /** The spend counter of a scope in a month, when it is known. */
  spendOf(orgId: number, scope: Scope, scopeId: string, month: string): Counter | undefined {
    return this.#byKey.get(keyOf({ orgId, scope, scopeId }, 'spend', month))
  }

  identify(counter: Counter, id: bigint): void {
    counter.id = id
    counter.idText = String(id)
    this.#byId.set(id, counter)
  }

  byId(id: bigint): Counter | undefined {
    return this.#byId.get(id)
  }

  /** Counters of a scope, any metric and period. */
  ofScope(ref: ScopeRef): Counter[] {
    return [...this.#byKey.values()].filter(c => c.orgId === ref.orgId && c.scope === ref.scope && c.scopeId === ref.scopeId)
  }

  all(): IterableIterator<Counter> {
    return this.#byKey.values()
  }

  forget(counter: Counter): void {
    this.#byKey.delete(keyOf(counter, counter.metric, counter.period))
    if (counter.id !== null) this.#byId.delete(counter.id)
  }

  /** What is leased of each, by row id. */
  leases(): Map<bigint, bigint> {
    return new Map([...this.#byId].flatMap(([id, counter]) => (counter.lease > 0n ? [[id, counter.lease] as const] : [])))
  }

  /** The database went back: what these records release is not in it (any more), and what is leased has to be read again. */
  doubt(released: ReadonlyMap<bigint, bigint>): void {
    for (const [id, counter] of this.#byId) {
      counter.unflushed = released.get(id) ?? 0n
      counter.unsure = true
    }
  }

  /** Drops everything: the process is fenced and its leases belong to an adopter. */
  clear(): void {
    this.#byKey.clear()
    this.#byId.clear()
  }

  get size(): number {
    return this.#byKey.size
  }
}
