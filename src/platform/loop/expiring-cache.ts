import { LRUCache } from 'lru-cache'
import type { Clock } from '../clock.ts'

interface Entry<V> {
  readonly value: V
  readonly expiresAtMs: number
  /** True when the last load of a newer value failed, or took longer than `patienceMs`. */
  isLate: boolean
}

interface Loading<V> {
  readonly answer: Promise<V | null>
  readonly sinceMs: number
  /** The invalidations that came since the load began. Its value is stored only when none of them matches. Null when there are none. */
  doubts: ((value: V) => boolean)[] | null
}

/**
 * Maximum time, in milliseconds, that a caller waits for a new value while an old one exists. Without this bound, a database that accepts connections but
 * does not answer would delay calls for much longer. The project chose this number.
 */
const patienceMs = 250

/** Maximum number of invalidations that one load is compared with. Beyond it the value is not stored. */
const doubtsMax = 100

export interface ExpiringCacheOptions<K, V> {
  /**
   * Maximum number of values, and the same number of missing values. The least recently used is dropped first. Callers choose which names are missing, so
   * these are counted apart and drop no value.
   */
  readonly max: number
  /** Maximum number of bytes of all values. A value that alone is larger is not stored. Without it, a value must have a bound of its own. */
  readonly bytes?: { readonly max: number; readonly sizeOf: (value: V) => number } | undefined
  readonly ttlMs: number
  /** How long a missing value is cached. The default is a tenth of `ttlMs`. */
  readonly negativeTtlMs?: number
  readonly clock: Clock
  readonly load: (key: K) => Promise<V | null>
}

/**
 * A bounded cache with a time to live. Concurrent misses of a key run `load` once. Changes take effect within 60 s, because the TTL is at most 30 s and
 * news from other processes invalidates entries immediately. A value that is used in the second half of its TTL is loaded again in the background. When
 * `load` fails or is slow, an old value is returned, for up to ten TTLs after it expired. So during a short outage of the database, no key looks unknown,
 * and no call waits more than once for the same value.
 */
export class ExpiringCache<K extends string | number, V> {
  readonly #entries: LRUCache<K, Entry<V>>
  /** The times until which keys have no value. */
  readonly #missing: LRUCache<K, number>
  readonly #loading = new Map<K, Loading<V>>()
  readonly #options: ExpiringCacheOptions<K, V>

  constructor(options: ExpiringCacheOptions<K, V>) {
    this.#options = options
    const { max, bytes } = options
    this.#entries = new LRUCache(bytes === undefined ? { max } : { max, maxSize: bytes.max, sizeCalculation: ({ value }) => bytes.sizeOf(value) })
    this.#missing = new LRUCache({ max: options.max })
  }

  /** Returns the value immediately when it is cached, otherwise a promise. Null means that there is no value. */
  get(key: K): V | null | Promise<V | null> {
    const entry = this.#entries.get(key)
    if (entry !== undefined) {
      const leftMs = entry.expiresAtMs - this.#options.clock.monotonicMs()
      if (leftMs > 0) {
        if (leftMs < this.#options.ttlMs / 2 && !this.#loading.has(key)) this.#load(key, entry)
        return entry.value
      }
    }
    if (this.#isMissing(key)) return null
    const running = this.#loading.get(key)
    // A load that an invalidation may concern is not good enough for a request that came after it.
    const loading = running === undefined || running.doubts !== null ? this.#load(key, entry) : running
    return entry !== undefined && this.#mayServe(entry) ? this.#awaitPatiently(loading, entry) : loading.answer
  }

  /** Returns the cached value without loading. Undefined when it is not cached. */
  peek(key: K): V | null | undefined {
    const entry = this.#entries.get(key)
    if (entry !== undefined && entry.expiresAtMs > this.#options.clock.monotonicMs()) return entry.value
    return this.#isMissing(key) ? null : undefined
  }

  /** Number of bytes of all values, as `sizeOf` counts them. */
  get sizeBytes(): number {
    return this.#entries.calculatedSize
  }

  /** Drops the value. A load that began earlier does not store an outdated one. Other keys are not concerned. */
  invalidate(key: K): void {
    this.#entries.delete(key)
    this.#missing.delete(key)
    this.#loading.delete(key)
  }

  /** Drops the values that match. Also drops missing values, because it is not known whether they match. A running load stores its value when it does not match. */
  invalidateWhere(matches: (value: V) => boolean): void {
    const matched: K[] = []
    this.#entries.forEach(({ value }, key) => {
      if (matches(value)) matched.push(key)
    })
    for (const key of matched) this.#entries.delete(key)
    this.#missing.clear()
    for (const loading of this.#loading.values()) {
      if (loading.doubts === null) loading.doubts = [matches]
      else loading.doubts = loading.doubts.length < doubtsMax ? [...loading.doubts, matches] : [() => true]
    }
  }

  clear(): void {
    this.#entries.clear()
    this.#missing.clear()
    this.#loading.clear()
  }

  #load(key: K, stale: Entry<V> | undefined): Loading<V> {
    const { load, ttlMs, clock } = this.#options
    const answer = load(key)
      .then(
        value => {
          if (this.#loading.get(key) === loading && !isDoubted(loading, value)) this.#store(key, value, ttlMs)
          return value
        },
        error => {
          if (stale !== undefined) stale.isLate = true
          if (stale !== undefined && this.#mayServe(stale)) return stale.value
          throw error
        },
      )
      .finally(() => {
        if (this.#loading.get(key) === loading) this.#loading.delete(key)
      })
    // After an old value was returned, a slow load may fail later while no caller waits for it.
    answer.catch(() => undefined)
    const loading: Loading<V> = { answer, sinceMs: clock.monotonicMs(), doubts: null }
    this.#loading.set(key, loading)
    return loading
  }

  #store(key: K, value: V | null, ttlMs: number): void {
    const nowMs = this.#options.clock.monotonicMs()
    if (value === null) {
      this.#entries.delete(key)
      this.#missing.set(key, nowMs + this.#negativeTtlMs)
    } else {
      this.#missing.delete(key)
      this.#entries.set(key, { value, expiresAtMs: nowMs + ttlMs, isLate: false })
    }
  }

  #isMissing(key: K): boolean {
    const untilMs = this.#missing.get(key)
    return untilMs !== undefined && untilMs > this.#options.clock.monotonicMs()
  }

  /** Returns whether an expired entry may still be returned while there is no new value. */
  #mayServe(entry: Entry<V>): boolean {
    return this.#options.clock.monotonicMs() - entry.expiresAtMs < 10 * this.#options.ttlMs
  }

  /** Returns the new value if it arrives within `patienceMs` of the start of the load, otherwise the old one. Does not wait for a source that was late before. */
  #awaitPatiently({ answer, sinceMs }: Loading<V>, old: Entry<V>): V | null | Promise<V | null> {
    const { clock } = this.#options
    const leftMs = sinceMs + patienceMs - clock.monotonicMs()
    if (old.isLate || leftMs <= 0) return old.value
    return new Promise((resolve, reject) => {
      const cancel = clock.after(leftMs, () => {
        old.isLate = true
        resolve(old.value)
      })
      answer.then(resolve, reject).finally(cancel)
    })
  }

  get #negativeTtlMs(): number {
    return this.#options.negativeTtlMs ?? this.#options.ttlMs / 10
  }
}

/** A missing value is in doubt after any invalidation, because it is not known whether it matches. */
function isDoubted<V>({ doubts }: Loading<V>, value: V | null): boolean {
  return doubts !== null && (value === null || doubts.some(matches => matches(value)))
}
