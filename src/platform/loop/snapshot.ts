/**
 * One value that many requests read and that is made in the background, such as a public page or sums over all organisations. A process makes the value at
 * most once in `maxAgeMs`, and only when a request reads it.
 *
 * ```ts
 * const list = new Snapshot({ name: 'registry', clock, log, maxAgeMs: 60_000, empty: publicPage([], 60), load: async () => publicPage(await rows(), 60) })
 * handle: async ({ list }, { headers }) => replyWithPage(await list.get(), headers['if-none-match'])
 * ```
 *
 * Decision 0343 gives the reasons.
 */
import type { Clock } from '../clock.ts'
import type { Log } from '../observe/log.ts'

export interface SnapshotOptions<V> {
  /** Name for the log. */
  readonly name: string
  readonly clock: Clock
  readonly log: Log
  /** A value of this age is loaded again. The old value is returned meanwhile. */
  readonly maxAgeMs: number
  /** The value before the first successful load. */
  readonly empty: V
  /** How long the first requests wait. The default is 3 s. */
  readonly firstWaitMs?: number
  load(): Promise<V>
}

/** Pause after a failed load, in milliseconds. */
const retryMs = 5000
/** A value counts as very old when its age is this many times `maxAgeMs`, because nobody requested it for a long time. */
const longUnasked = 10
/** How long a request waits for a new value that replaces an invalidated or very old one, in milliseconds. */
const patienceMs = 250
/** How long the first requests wait for the first value by default, in milliseconds. */
const firstWaitDefaultMs = 3000

/** Keeps the value and loads it again when it is too old. */
export class Snapshot<V> {
  readonly #options: SnapshotOptions<V>
  #made: { readonly value: V; readonly atMs: number } | null = null
  #loading: Promise<void> | null = null
  #failedAtMs: number | null = null
  /** Increases with every invalidation, so that a load that began earlier does not store an outdated value. */
  #generation = 0

  constructor(options: SnapshotOptions<V>) {
    this.#options = options
  }

  /**
   * Returns the value and never rejects. Waits for the very first value, and briefly for a value that replaces an invalidated or very old
   * one. While loads fail, returns the last value, or `empty`.
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

  /** Invalidates the value after a change in this process or after news. The next request loads it again and waits briefly for it. */
  invalidate(): void {
    this.#generation++
    if (this.#made !== null) this.#made = { value: this.#made.value, atMs: Number.NEGATIVE_INFINITY }
    this.#loading = null
  }

  #current(): V {
    return this.#made === null ? this.#options.empty : this.#made.value
  }

  /**
   * Returns the age of the value in milliseconds, Infinity without a value. When the clock was set back, the value counts as old, so that it is not kept
   * forever.
   */
  #ageMs(): number {
    return this.#made === null ? Number.POSITIVE_INFINITY : Math.abs(this.#options.clock.nowMs() - this.#made.atMs)
  }

  /** Returns the running load, or a new one. Null shortly after a failed load. */
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
