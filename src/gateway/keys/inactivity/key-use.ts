import type { Clock } from '../../../platform/clock.ts'
import type { Db } from '../../../platform/db/db.ts'
import type { Log } from '../../../platform/observe/log.ts'
import { touchKeys } from '../queries.ts'

const flushEveryMs = 30_000

/** When each key was last used. Calls only note it in memory; the database gets it in batches, one statement for all keys. */
export class KeyUse {
  readonly #db: Db
  readonly #clock: Clock
  /** Key id -> Unix milliseconds. Bounded by the number of keys that are used between two flushes. */
  #usedAtMs = new Map<number, number>()

  constructor(db: Db, clock: Clock) {
    this.#db = db
    this.#clock = clock
  }

  note(keyId: number): void {
    this.#usedAtMs.set(keyId, this.#clock.nowMs())
  }

  /** The last use of the key that this process has not written yet, in Unix milliseconds; null for none. */
  pendingMs(keyId: number): number | null {
    return this.#usedAtMs.get(keyId) ?? null
  }

  /** Writes what was noted. When the database is away the notes are kept for the next time. */
  async flush(): Promise<void> {
    if (this.#usedAtMs.size === 0) return
    const batch = this.#usedAtMs
    this.#usedAtMs = new Map()
    try {
      await this.#db.exec(
        touchKeys,
        [...batch.keys()],
        [...batch.values()].map(ms => new Date(ms)),
      )
    } catch (error) {
      for (const [id, ms] of batch) if (!this.#usedAtMs.has(id)) this.#usedAtMs.set(id, ms)
      throw error
    }
  }

  /** Flushes every half minute; the returned function stops it and flushes a last time. */
  start(log: Log): () => Promise<void> {
    const stop = this.#clock.every(flushEveryMs, () => void this.flush().catch(error => log.warn('key_use_flush_failed', { error })))
    return async () => {
      stop()
      await this.flush()
    }
  }
}
