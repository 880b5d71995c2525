/**
 * Caches the budgets of scopes, so that a call need not ask the database. An entry lives CACHE_TTL_MS (at most 30 s). Entries past half of that
 * are refreshed in one batch. The news of a changed cap invalidates an entry.
 */
import { isDeepStrictEqual } from 'node:util'
import { LRUCache } from 'lru-cache'
import type { Clock } from '../../../platform/clock.ts'
import { DatabaseUnavailableError, type Db } from '../../../platform/db/db.ts'
import type { ScopeRef } from '../engine/counters/counter-state.ts'
import { type BudgetRow, findBudgets } from '../engine/queries.ts'
import { type BudgetPeriod, budgetPeriods } from './periods/period.ts'
import { zonesOf } from './periods/zone-queries.ts'
import type { BudgetZones } from './periods/zones.ts'

const entriesMax = 100_000
/** The promise "effective within 60 s" leaves room for two lifetimes. */
const ttlMaxMs = 30_000
/** The time for which a call waits for a new answer while it has an old one. The project chose the number. */
const patienceMs = 250

/** The budget of one period. */
export interface PeriodCap {
  readonly period: BudgetPeriod
  readonly capUinr: bigint
  readonly strict: boolean
}

/** The cached budgets of one scope. The object stays the same while it is cached; refreshes write into it. */
export interface BudgetEntry {
  readonly ref: ScopeRef
  /** The budgets of the scope, that of the longest period first. */
  caps: readonly PeriodCap[]
  /** For the scope `org`: the time zones of the organisation. Null when it has set none. */
  zones: BudgetZones | null
  /** The time of the answer in milliseconds of the monotonic clock. Negative infinity when it must be asked again. */
  fetchedAtMs: number
}

export interface BudgetCacheOptions {
  readonly db: Db
  readonly clock: Clock
  readonly ttlMs: number
  /** The time for which old entries are used while the database is away. */
  readonly offlineMaxMs: number
  /** Is called when a cap, its strictness or a time zone changed, so that derived values are computed again. */
  readonly onChange: (entry: BudgetEntry) => void
}

/** The cached budgets of scopes. */
export class BudgetCache {
  readonly #options: BudgetCacheOptions
  readonly #entries = new LRUCache<string, BudgetEntry>({ max: entriesMax })
  readonly #ttlMs: number
  #refreshing: Promise<void> | null = null
  #refreshingSinceMs = 0
  readonly #pending = new Set<BudgetEntry>()
  /** The number of overdue answers. */
  #slow = 0
  /** True when the last answer failed or was overdue. Calls then do not wait for the next one while they have an old one. */
  #isLate = false

  constructor(options: BudgetCacheOptions) {
    this.#options = options
    this.#ttlMs = Math.min(options.ttlMs, ttlMaxMs)
  }

  /** Returns the entries of these scopes. It asks the database for entries that are not fresh. */
  async load(refs: readonly ScopeRef[]): Promise<BudgetEntry[]> {
    const entries = refs.map(ref => this.#entry(ref))
    const nowMs = this.#options.clock.monotonicMs()
    const stale = entries.filter(entry => nowMs - entry.fetchedAtMs >= this.#ttlMs)
    if (stale.length === 0) return entries
    // The outage counts from the end of an entry's lifetime. So an entry that was old when the database went away is used as long as a fresh one.
    const isUsable = stale.every(entry => nowMs - entry.fetchedAtMs < this.#ttlMs + this.#options.offlineMaxMs)
    if (isUsable) await this.#fetchPatiently(stale)
    else await this.#fetch(stale)
    return entries
  }

  /** Returns true when all entries are fresh. Entries past half of their lifetime are refreshed in the background. */
  areFresh(entries: readonly BudgetEntry[], nowMs: number): boolean {
    let oldestMs = nowMs
    for (const entry of entries) if (entry.fetchedAtMs < oldestMs) oldestMs = entry.fetchedAtMs
    const ageMs = nowMs - oldestMs
    if (ageMs < this.#ttlMs / 2) return true
    this.#refreshLater(entries, nowMs)
    return ageMs < this.#ttlMs
  }

  /** Invalidates a scope whose cap has changed. */
  invalidate(ref: ScopeRef): void {
    const entry = this.#entries.get(keyOf(ref))
    if (entry !== undefined) entry.fetchedAtMs = Number.NEGATIVE_INFINITY
  }

  /** Invalidates all entries. */
  invalidateAll(): void {
    for (const entry of this.#entries.values()) entry.fetchedAtMs = Number.NEGATIVE_INFINITY
  }

  #entry(ref: ScopeRef): BudgetEntry {
    const key = keyOf(ref)
    let entry = this.#entries.get(key)
    if (entry === undefined) {
      entry = { ref, caps: none, zones: null, fetchedAtMs: Number.NEGATIVE_INFINITY }
      this.#entries.set(key, entry)
    }
    return entry
  }

  #refreshLater(entries: readonly BudgetEntry[], nowMs: number): void {
    for (const entry of entries) if (nowMs - entry.fetchedAtMs >= this.#ttlMs / 2) this.#pending.add(entry)
    if (this.#refreshing !== null || this.#pending.size === 0) return
    const batch = [...this.#pending]
    this.#pending.clear()
    this.#refreshingSinceMs = nowMs
    // A failed refresh is not an error: the entries expire, and the next call asks the database.
    this.#refreshing = this.#fetch(batch)
      .catch(() => {
        this.#isLate = true
      })
      .finally(() => {
        this.#refreshing = null
      })
  }

  /**
   * Fetches new answers, but waits at most `patienceMs` for them. Otherwise the old answers are used, and no call asks again before the slow
   * answer arrives. It does not wait at all when the last answer was late.
   */
  async #fetchPatiently(entries: readonly BudgetEntry[]): Promise<void> {
    const { clock } = this.#options
    if (this.#slow > 0 || (this.#refreshing !== null && clock.monotonicMs() - this.#refreshingSinceMs >= patienceMs)) return
    if (this.#isLate) {
      this.#slow++
      this.#fetch(entries)
        .catch(() => undefined)
        .finally(() => {
          this.#slow--
        })
      return
    }
    await new Promise<void>((resolve, reject) => {
      let isSlow = false
      const cancel = clock.after(patienceMs, () => {
        isSlow = true
        this.#isLate = true
        this.#slow++
        resolve()
      })
      this.#fetch(entries)
        .catch(error => {
          if (!(error instanceof DatabaseUnavailableError)) throw error
          this.#isLate = true
        })
        .then(resolve, reject)
        .finally(() => {
          cancel()
          if (isSlow) this.#slow--
        })
    })
  }

  async #fetch(entries: readonly BudgetEntry[]): Promise<void> {
    const askedAtMs = this.#options.clock.monotonicMs()
    const rows = await this.#options.db.many(
      findBudgets,
      entries.map(e => e.ref.orgId),
      entries.map(e => e.ref.scope),
      entries.map(e => e.ref.scopeId),
    )
    this.#isLate = false
    const byKey = new Map<string, BudgetRow[]>()
    for (const row of rows) {
      const key = keyOf(row)
      const known = byKey.get(key)
      if (known === undefined) byKey.set(key, [row])
      else known.push(row)
    }
    for (const entry of entries) {
      const found = byKey.get(keyOf(entry.ref)) ?? []
      const caps = capsOf(found)
      const zones = found[0] === undefined ? null : zonesOf(found[0])
      const isChanged = !areSame(entry.caps, caps) || !isDeepStrictEqual(entry.zones, zones)
      entry.caps = caps
      entry.zones = zones
      entry.fetchedAtMs = askedAtMs
      if (isChanged) this.#options.onChange(entry)
    }
  }
}

const none: readonly PeriodCap[] = []

/** Returns the budgets of the rows of one scope, that of the longest period first. */
function capsOf(rows: readonly BudgetRow[]): readonly PeriodCap[] {
  const caps = rows.flatMap(({ period, capUinr, strict }) => (period === null || capUinr === null ? [] : [{ period, capUinr, strict: strict === true }]))
  return caps.length === 0 ? none : caps.sort((a, b) => budgetPeriods.indexOf(a.period) - budgetPeriods.indexOf(b.period))
}

const areSame = (a: readonly PeriodCap[], b: readonly PeriodCap[]): boolean =>
  a.length === b.length && a.every(({ period, capUinr, strict }, i) => period === b[i]?.period && capUinr === b[i].capUinr && strict === b[i].strict)

const keyOf = (ref: Pick<BudgetRow, 'orgId' | 'scope' | 'scopeId'>): string => `${ref.orgId}|${ref.scope}|${ref.scopeId}`
