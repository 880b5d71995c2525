import { LRUCache } from 'lru-cache'
import type { Clock } from '../clock.ts'

interface Entry<V> {
  readonly value: V | null
  readonly expiresAtMs: number
}

interface Loading<V> {
  readonly answer: Promise<V | null>
  readonly sinceMs: number
}

/**
 * Maximum time, in milliseconds, that a caller waits for a new value while an old one exists. Without this bound, a database that accepts connections but
 * does not answer would delay calls for much longer. The project chose this number.
 */
const patienceMs = 250

export interface ExpiringCacheOptions<K, V> {
  /** Maximum number of entries. The least recently used is dropped first. */
  readonly max: number
  readonly ttlMs: number
  /** How long a missing value is cached. The default is a tenth of `ttlMs`. */
  readonly negativeTtlMs?: number
  readonly clock: Clock
  readonly load: (key: K) => Promise<V | null>
}

/**
 * A bounded cache with a time to live. Concurrent misses of a key run `load` once. Changes take effect within 60 s, because the TTL is at most 30 s and
 * news from other processes invalidates entries immediately. When `load` fails or is slow, an old value is returned, for up to ten TTLs after it expired.
 * So during a short outage of the database, no key looks unknown and calls are not delayed.
 */
export class ExpiringCache<K extends string | number, V> {
  readonly #entries: LRUCache<K, Entry<V>>
  readonly #loading = new Map<K, Loading<V>>()
  readonly #options: ExpiringCacheOptions<K, V>
  /** Increases with every invalidation, so that a load that began before the invalidation does not store an outdated value. */
  #generation = 0

  constructor(options: ExpiringCacheOptions<K, V>) {
    this.#options = options
    this.#entries = new LRUCache({ max: options.max })
  }

  /** Returns the value immediately when it is cached, otherwise a promise. Null means that there is no value. */
  get(key: K): V | null | Promise<V | null> {
    const entry = this.#entries.get(key)
    if (entry !== undefined && entry.expiresAtMs > this.#options.clock.monotonicMs()) return entry.value
    const loading = this.#loading.get(key) ?? this.#load(key, entry)
    return entry !== undefined && this.#mayServe(entry) ? this.#awaitPatiently(loading, entry.value) : loading.answer
  }

  /** Returns the cached value without loading. Undefined when it is not cached. */
  peek(key: K): V | null | undefined {
    const entry = this.#entries.get(key)
    return entry !== undefined && entry.expiresAtMs > this.#options.clock.monotonicMs() ? entry.value : undefined
  }

  invalidate(key: K): void {
    this.#generation++
    this.#entries.delete(key)
    this.#loading.delete(key)
  }

  /** Drops the values that match. Also drops missing values and the results of running loads, because nobody can tell whether they match. */
  invalidateWhere(matches: (value: V) => boolean): void {
    this.#generation++
    for (const [key, { value }] of [...this.#entries.entries()]) if (value === null || matches(value)) this.#entries.delete(key)
    this.#loading.clear()
  }

  clear(): void {
    this.#generation++
    this.#entries.clear()
    this.#loading.clear()
  }

  #load(key: K, stale: Entry<V> | undefined): Loading<V> {
    const generation = this.#generation
    const { load, ttlMs, clock } = this.#options
    const answer = load(key)
      .then(
        value => {
          if (generation === this.#generation)
            this.#entries.set(key, { value, expiresAtMs: clock.monotonicMs() + (value === null ? this.#negativeTtlMs : ttlMs) })
          return value
        },
        error => {
          if (stale !== undefined && this.#mayServe(stale)) return stale.value
          throw error
        },
      )
      .finally(() => {
        if (this.#loading.get(key) === loading) this.#loading.delete(key)
      })
    // After an old value was returned, a slow load may fail later while no caller waits for it.
    answer.catch(() => undefined)
    const loading = { answer, sinceMs: clock.monotonicMs() }
    this.#loading.set(key, loading)
    return loading
  }

  /** Returns whether an expired entry may still be returned while there is no new value. */
  #mayServe(entry: Entry<V>): boolean {
    return entry.value !== null && this.#options.clock.monotonicMs() - entry.expiresAtMs < 10 * this.#options.ttlMs
  }

  /** Returns the new value if it arrives within `patienceMs` of the start of the load, otherwise the old one. */
  #awaitPatiently({ answer, sinceMs }: Loading<V>, old: V | null): V | null | Promise<V | null> {
    const { clock } = this.#options
    const leftMs = sinceMs + patienceMs - clock.monotonicMs()
    if (leftMs <= 0) return old
    return new Promise((resolve, reject) => {
      const cancel = clock.after(leftMs, () => resolve(old))
      answer.then(resolve, reject).finally(cancel)
    })
  }

  get #negativeTtlMs(): number {
    return this.#options.negativeTtlMs ?? this.#options.ttlMs / 10
  }
}
