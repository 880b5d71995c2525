import type { Clock } from '../../../platform/clock.ts'
import type { Db } from '../../../platform/db/db.ts'
import type { Log } from '../../../platform/observe/log.ts'
import { touchKeys } from '../queries.ts'

const flushEveryMs = 30_000

/**
 * Records when each key was last used. A call only notes the time in memory. A timer writes the times of all keys to the database in one
 * statement.
 */
export class KeyUse {
  readonly #db: Db
  readonly #clock: Clock
  /** Key id -> Unix milliseconds. Contains only keys that were used since the last flush. */
  #usedAtMs = new Map<number, number>()

  constructor(db: Db, clock: Clock) {
    this.#db = db
    this.#clock = clock
  }

  note(keyId: number): void {
    this.#usedAtMs.set(keyId, this.#clock.nowMs())
  }

  /** Returns the Unix milliseconds of the last use that this process has not written yet, or null. */
  pendingMs(keyId: number): number | null {
    return this.#usedAtMs.get(keyId) ?? null
  }

  /** Writes the noted uses. When the database fails, keeps them for the next flush and throws. */
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

  /** Starts a flush every half minute. The returned function stops the timer and flushes one last time. */
  start(log: Log): () => Promise<void> {
    const stop = this.#clock.every(flushEveryMs, () => void this.flush().catch(error => log.warn('key_use_flush_failed', { error })))
    return async () => {
      stop()
      await this.flush()
    }
  }
}
