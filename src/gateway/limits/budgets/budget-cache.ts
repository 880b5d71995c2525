/**
 * Caches the budgets of scopes, so that a call need not ask the database. An entry lives CACHE_TTL_MS (at most 30 s). Entries past half of that
 * are refreshed in one batch. The news of a changed cap invalidates an entry.
 */
import { LRUCache } from 'lru-cache'
import type { Clock } from '../../../platform/clock.ts'
import { DatabaseUnavailableError, type Db } from '../../../platform/db/db.ts'
import type { ScopeRef } from '../engine/counters/counter-state.ts'
import { findBudgets } from '../engine/queries.ts'

const entriesMax = 100_000
/** The promise "effective within 60 s" leaves room for two lifetimes. */
const ttlMaxMs = 30_000
/** The time for which a call waits for a new answer while it has an old one. The project chose the number. */
const patienceMs = 250

/** The cached budget of one scope. The object stays the same while it is cached; refreshes write into it. */
export interface BudgetEntry {
  readonly ref: ScopeRef
  capUinr: bigint | null
  strict: boolean
  /** The time of the answer in milliseconds of the monotonic clock. Negative infinity when it must be asked again. */
  fetchedAtMs: number
}

export interface BudgetCacheOptions {
  readonly db: Db
  readonly clock: Clock
  readonly ttlMs: number
  /** The time for which old entries are used while the database is away. */
  readonly offlineMaxMs: number
  /** Is called when a cap or its strictness changed, so that derived values are computed again. */
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
      entry = { ref, capUinr: null, strict: false, fetchedAtMs: Number.NEGATIVE_INFINITY }
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
    const byKey = new Map(rows.map(row => [`${row.orgId}|${row.scope}|${row.scopeId}`, row]))
    for (const entry of entries) {
      const row = byKey.get(keyOf(entry.ref))
      const capUinr = row?.capUinr ?? null
      const strict = row?.strict ?? false
      const isChanged = entry.capUinr !== capUinr || entry.strict !== strict
      entry.capUinr = capUinr
      entry.strict = strict
      entry.fetchedAtMs = askedAtMs
      if (isChanged) this.#options.onChange(entry)
    }
  }
}

const keyOf = (ref: ScopeRef): string => `${ref.orgId}|${ref.scope}|${ref.scopeId}`
