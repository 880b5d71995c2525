/** Removes expired journal entries from the store with their history, and returns their bytes to the quota. */
import type { Clock } from '../../platform/clock.ts'
import type { Db } from '../../platform/db/db.ts'
import { claimDue } from '../../platform/db/jobs.ts'
import { toGatewayError } from '../../platform/errors.ts'
import type { Log } from '../../platform/observe/log.ts'
import type { ConfiguredStore } from '../access/memory-call.ts'
import { isExpired } from '../access/path-rules.ts'
import { joinKey } from '../memory-key.ts'
import type { Intent, MemoryIndex } from '../objects/index/memory-index.ts'
import { nobody, writtenMsOf } from '../provenance.ts'
import { isStoreError, ObjectStoreError } from '../stores/object-store.ts'
import { claimPurges, oldJournal, purgeSoon } from './reconcile-queries.ts'

/** How often the job looks for stores that are due. */
export const purgeEveryMs = 60_000
/** How often the journals of one store are checked. */
const storeEveryMs = 10 * 60_000
/** Maximum number of stores that one process purges concurrently, so that a slow store does not delay the others. */
const storesTogether = 4
/** Maximum time of a run. After this time the run begins no further store, because other work with stores waits for the run. */
const runMsMax = 2 * 60_000
/** Maximum number of entries that one round removes for one organisation. An organisation with more entries gets another round after the others. */
const entriesMax = 500
const deletesAtOnce = 4
/** Maximum time for one store. Its other entries are left to the next round. */
const storeMsMax = 60_000
const dayMs = 86_400_000

export interface JournalPurgeDeps {
  readonly db: Db
  readonly clock: Clock
  readonly log: Log
  readonly index: MemoryIndex
  /** Returns the store as it is configured now. Returns null when there is none. */
  storeOf(orgId: number): Promise<ConfiguredStore | null>
}

export class JournalPurge {
  readonly #deps: JournalPurgeDeps

  constructor(deps: JournalPurgeDeps) {
    this.#deps = deps
  }

  /** Purges every store that is due. Several processes share the stores. Returns the number of removed entries. */
  async run(signal: AbortSignal): Promise<number> {
    const { db, clock, log } = this.#deps
    let removed = 0
    const claim = (): [Date, Date, number] => [new Date(clock.nowMs()), new Date(clock.nowMs() + storeEveryMs), 1]
    const work = async ({ orgId }: { readonly orgId: number }): Promise<void> => {
      try {
        removed += await this.purge(orgId, signal)
      } catch (error) {
        log.warn('memory.journal_not_purged', { orgId, error })
      }
    }
    const endMs = clock.monotonicMs() + runMsMax
    const worker = async (): Promise<void> => {
      while (!signal.aborted && clock.monotonicMs() < endMs) if ((await claimDue(db, claimPurges, claim, work, 1)) === 0) return
    }
    await Promise.all(Array.from({ length: storesTogether }, worker))
    return removed
  }

  /** Removes the expired entries in the journals of one organisation, at most 500. Throws ObjectStoreError when the store fails. */
  async purge(orgId: number, signal: AbortSignal): Promise<number> {
    const { db, clock } = this.#deps
    const configured = await this.#deps.storeOf(orgId)
    if (configured === null) return 0
    const nowMs = clock.nowMs()
    const old = await db.many(oldJournal, orgId, new Date(nowMs - configured.row.journalTtlDays * dayMs), entriesMax)
    let removed = 0
    const left = old.values()
    const endMs = clock.monotonicMs() + storeMsMax
    const worker = async (): Promise<void> => {
      for (const { key } of left) {
        if (signal.aborted || clock.monotonicMs() >= endMs) return
        if (await this.#expire(configured, key, signal)) removed++
      }
    }
    await Promise.all(Array.from({ length: deletesAtOnce }, worker))
    if (old.length === entriesMax && removed > 0) await db.exec(purgeSoon, orgId, new Date(nowMs))
    return removed
  }

  /** Removes one expired entry. Returns false when the entry has not expired after all, or when a running write has its key. */
  async #expire(configured: ConfiguredStore, key: string, signal: AbortSignal): Promise<boolean> {
    const { index } = this.#deps
    const { row } = configured
    const about = { orgId: row.orgId, key, kind: 'delete', how: 'expire', generation: row.generation, author: nobody, sha256: null, sizeBytes: 0 } as const
    let intent: Intent
    try {
      intent = await index.take({ ...about, signal, waitMs: 0 })
    } catch (error) {
      if (['memory_busy', 'memory_store_failed'].includes(toGatewayError(error).errorName)) return false
      throw error
    }
    try {
      const isGone = await this.#delete(configured, key)
      if (isGone) await index.settleDelete(intent, { kind: 'none' }, 0)
      else await index.release(intent)
      return isGone
    } catch (error) {
      if (error instanceof ObjectStoreError && error.mayHaveHappened) await index.doubt(intent)
      else await index.release(intent)
      throw error
    }
  }

  /** Deletes one entry. The age is read from the store, because the entry may have been replaced since the index was read. */
  async #delete({ row, store }: ConfiguredStore, key: string): Promise<boolean> {
    const storeKey = joinKey(row.orgId, key)
    const head = await store.head(storeKey)
    if (head === null) return true
    if (!isExpired(key, writtenMsOf(head), row.journalTtlDays, this.#deps.clock.nowMs())) return false
    try {
      await store.delete(storeKey, row.casDelete ? { ifMatch: head.etag } : {})
      return true
    } catch (error) {
      if (isStoreError(error, 'precondition-failed')) return false
      throw error
    }
  }
}
