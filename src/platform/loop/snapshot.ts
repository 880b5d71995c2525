/**
 * One value that many requests read and that is worked out beside them: a page for everybody, sums over all organisations. However many ask,
 * it is made once in `maxAgeMs` and process, and not at all while nobody asks.
 *
 * ```ts
 * const list = new Snapshot({ name: 'registry', clock, log, maxAgeMs: 60_000, empty: publicPage([], 60), load: async () => publicPage(await rows(), 60) })
 * handle: async ({ list }, { headers }) => replyWithPage(await list.get(), headers['if-none-match'])
 * ```
 *
 * Decision 0343 says why.
 */
import type { Clock } from '../clock.ts'
import type { Log } from '../observe/log.ts'

export interface SnapshotOptions<V> {
  /** For the log. */
  readonly name: string
  readonly clock: Clock
  readonly log: Log
  /** A value of this age is loaded again, while the old value is still returned. */
  readonly maxAgeMs: number
  /** Given out while none could be made yet. */
  readonly empty: V
  /** Default 3 s. */
  readonly firstWaitMs?: number
  load(): Promise<V>
}

/** After a failure nothing is loaded for this time. */
const retryMs = 5000
/** A value this many times older than its age limit was not requested for a long time. */
const longUnasked = 10
/** How long a request waits for a new value in place of such an old one. */
const patienceMs = 250
/** How long the first requests wait for the first value. */
const firstWaitDefaultMs = 3000

/** A value that ages. */
export class Snapshot<V> {
  readonly #options: SnapshotOptions<V>
  #made: { readonly value: V; readonly atMs: number } | null = null
  #loading: Promise<void> | null = null
  #failedAtMs: number | null = null
  /** Rises with every invalidation, so that a load that began before it does not pass for a fresh one. */
  #generation = 0

  constructor(options: SnapshotOptions<V>) {
    this.#options = options
  }

  /**
   * Returns the value and never rejects. A request waits for the very first value, and briefly for a value that replaces an invalidated one or one that
   * was not requested for a long time. While loads fail it returns the last value, or `empty`.
   */
  get(): V | Promise<V> {
    const ageMs = this.#ageMs()
    const { maxAgeMs, firstWaitMs = firstWaitDefaultMs } = this.#options
    if (ageMs < maxAgeMs) return this.#current()
    const loading = this.#load()
    if (loading === null) return this.#current()
    if (this.#made === null) return this.#after(loading, firstWaitMs)
    return ageMs > longUnasked * maxAgeMs ? this.#after(loading, patienceMs) : this.#current()
  }

  /** Invalidates after a change in this process, or after news from another: the next request loads the value again and waits briefly for it. */
  invalidate(): void {
    this.#generation++
    if (this.#made !== null) this.#made = { value: this.#made.value, atMs: Number.NEGATIVE_INFINITY }
    this.#loading = null
  }

  #current(): V {
    return this.#made === null ? this.#options.empty : this.#made.value
  }

  /** Infinite without a value. A clock that was put back makes it old rather than young for ever. */
  #ageMs(): number {
    return this.#made === null ? Number.POSITIVE_INFINITY : Math.abs(this.#options.clock.nowMs() - this.#made.atMs)
  }

  /** The load that is under way, or a new one; null when the last one failed just now. */
  #load(): Promise<void> | null {
    if (this.#loading !== null) return this.#loading
    const { clock, load, log, name } = this.#options
    const startMs = clock.nowMs()
    if (this.#failedAtMs !== null && Math.abs(startMs - this.#failedAtMs) < retryMs) return null
    const generation = this.#generation
    const loading = load().then(
      value => {
        this.#failedAtMs = null
        if (generation === this.#generation) this.#made = { value, atMs: startMs }
      },
      (error: unknown) => {
        this.#failedAtMs = clock.nowMs()
        log.warn('snapshot_failed', { job: name, error })
      },
    )
    const ended = loading.finally(() => {
      if (this.#loading === ended) this.#loading = null
    })
    this.#loading = ended
    return ended
  }

  #after(loading: Promise<void>, waitMs: number): Promise<V> {
    return new Promise(resolve => {
      const done = (): void => resolve(this.#current())
      const cancel = this.#options.clock.after(waitMs, done)
      void loading.then(() => {
        cancel()
        done()
      })
    })
  }
}
