/**
 * Which scopes have a budget, so that a call need not ask. Entries live CACHE_TTL_MS (at most 30 s), are refreshed in one batch when
 * half of that has passed, and fall with the news of a changed cap.
 */
import { LRUCache } from 'lru-cache'
import type { Clock } from '../../../platform/clock.ts'
import { DatabaseUnavailableError, type Db } from '../../../platform/db/db.ts'
import type { ScopeRef } from '../engine/counters/counter-state.ts'
import { findBudgets } from '../engine/queries.ts'

const entriesMax = 100_000
/** "Effective within 60 s" leaves room for two of these. */
const ttlMaxMs = 30_000
/** How long a call waits for a new answer while there is an old one. Ours. */
const patienceMs = 250

/** What is known of one scope. The object stays the same while it is cached; refreshes write into it. */
export interface BudgetEntry {
  readonly ref: ScopeRef
  capUinr: bigint | null
  strict: boolean
  /** Monotonic ms of the answer; negative infinity when it must be asked again. */
  fetchedAtMs: number
}

export interface BudgetCacheOptions {
  readonly db: Db
  readonly clock: Clock
  readonly ttlMs: number
  /** How long old entries serve while the database is away. */
  readonly offlineMaxMs: number
  /** Called when a cap or its strictness changed, so that what was derived from it is made again. */
  readonly onChange: (entry: BudgetEntry) => void
}

/** Cached budgets by scope. */
export class BudgetCache {
  readonly #options: BudgetCacheOptions
  readonly #entries = new LRUCache<string, BudgetEntry>({ max: entriesMax })
  readonly #ttlMs: number
  #refreshing: Promise<void> | null = null
  readonly #pending = new Set<BudgetEntry>()
  /** Answers that are overdue. */
  #slow = 0

  constructor(options: BudgetCacheOptions) {
    this.#options = options
    this.#ttlMs = Math.min(options.ttlMs, ttlMaxMs)
  }

  /** The entries of these scopes; asks the database for those that are not fresh. */
  async load(refs: readonly ScopeRef[]): Promise<BudgetEntry[]> {
    const entries = refs.map(ref => this.#entry(ref))
    const nowMs = this.#options.clock.monotonicMs()
    const stale = entries.filter(entry => nowMs - entry.fetchedAtMs >= this.#ttlMs)
    if (stale.length === 0) return entries
    // Life first, then the outage: an entry that was old when the database went away serves as long as a fresh one.
    const isUsable = stale.every(entry => nowMs - entry.fetchedAtMs < this.#ttlMs + this.#options.offlineMaxMs)
    if (isUsable) await this.#fetchPatiently(stale)
    else await this.#fetch(stale)
    return entries
  }

  /** True when all are fresh. Those past half of their life are refreshed in the background. */
  areFresh(entries: readonly BudgetEntry[], nowMs: number): boolean {
    let oldestMs = nowMs
    for (const entry of entries) if (entry.fetchedAtMs < oldestMs) oldestMs = entry.fetchedAtMs
    const ageMs = nowMs - oldestMs
    if (ageMs < this.#ttlMs / 2) return true
    this.#refreshLater(entries, nowMs)
    return ageMs < this.#ttlMs
  }

  /** Forgets what is known of a scope: its cap changed. */
  invalidate(ref: ScopeRef): void {
    const entry = this.#entries.get(keyOf(ref))
    if (entry !== undefined) entry.fetchedAtMs = Number.NEGATIVE_INFINITY
  }

  /** Forgets everything. */
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
    // A failed refresh is no error: the entries run out and the next call asks for itself.
    this.#refreshing = this.#fetch(batch)
      .catch(() => undefined)
      .finally(() => {
        this.#refreshing = null
      })
  }

  /** New answers when they come soon; else the old ones stay, and nobody asks again before the slow answer is there. */
  async #fetchPatiently(entries: readonly BudgetEntry[]): Promise<void> {
    if (this.#slow > 0) return
    const { clock } = this.#options
    await new Promise<void>((resolve, reject) => {
      let isSlow = false
      const cancel = clock.after(patienceMs, () => {
        isSlow = true
        this.#slow++
        resolve()
      })
      this.#fetch(entries)
        .then(resolve, error => (error instanceof DatabaseUnavailableError ? resolve() : reject(error)))
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
