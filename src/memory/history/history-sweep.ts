/**
 * Marks versions for removal by their age and by the quota, and removes the bytes of marked versions. Versions above the
 * maximum number are marked elsewhere, by the statement that settles a write.
 */
import type { Clock } from '../../platform/clock.ts'
import type { Db } from '../../platform/db/db.ts'
import type { Log } from '../../platform/observe/log.ts'
import type { ConfiguredStore } from '../access/memory-call.ts'
import { versionKey } from '../objects/version-keeper.ts'
import type { RestingStores } from '../upkeep/resting-stores.ts'
import { type DoomedRow, doomedOfKey, doomedVersions, doomOld, doomOverQuota, postponeDoomed, removeDoomed } from './history-queries.ts'

/** How often the age of versions is checked. */
const ageEveryMs = 10 * 60_000
/** Maximum number of versions that one sweep removes. The next constant is the maximum for one organisation. */
const removedMax = 1000
const removedOfOneMax = 200
/** Maximum time of one sweep for one store, so that a slow or silent store does not delay other organisations for longer. */
const storeMsMax = 30_000
const deletesAtOnce = 8
/** How long a version is postponed when the store did not remove it. */
const againMs = 60_000

export interface HistorySweepDeps {
  readonly db: Db
  readonly clock: Clock
  readonly log: Log
  readonly resting: RestingStores
  /** Returns the store as it is configured now. Returns null when there is none. */
  storeOf(orgId: number): Promise<ConfiguredStore | null>
}

export class HistorySweep {
  readonly #deps: HistorySweepDeps
  #ageDueMs = 0

  constructor(deps: HistorySweepDeps) {
    this.#deps = deps
  }

  /** Makes one round for every organisation. Returns the number of removed versions. */
  async run(nowMs: number): Promise<number> {
    const { db } = this.#deps
    const now = new Date(nowMs)
    if (nowMs >= this.#ageDueMs) {
      this.#ageDueMs = nowMs + ageEveryMs
      await db.exec(doomOld, now)
    }
    await db.exec(doomOverQuota, now)
    return this.#remove(await db.many(doomedVersions, now, removedMax, removedOfOneMax, this.#deps.resting.at(nowMs)))
  }

  /** Removes the marked versions of one key immediately. When the store refuses to remove a version now, `run` removes it later. */
  async removeOf(orgId: number, key: string): Promise<void> {
    await this.#remove(await this.#deps.db.many(doomedOfKey, orgId, key, removedMax))
  }

  async #remove(doomed: readonly DoomedRow[]): Promise<number> {
    let removed = 0
    const stores = new Map<number, Promise<ConfiguredStore | null>>()
    const endsMs = new Map<number, number>()
    const left = doomed.values()
    const worker = async (): Promise<void> => {
      for (const row of left) {
        const store = stores.get(row.orgId) ?? this.#deps.storeOf(row.orgId)
        stores.set(row.orgId, store)
        const endMs = endsMs.get(row.orgId) ?? this.#deps.clock.monotonicMs() + storeMsMax
        endsMs.set(row.orgId, endMs)
        if (this.#deps.clock.monotonicMs() >= endMs) await this.#postpone(row)
        else if (await this.#removeOne(row, store)) removed++
        else endsMs.set(row.orgId, 0)
      }
    }
    await Promise.all(Array.from({ length: deletesAtOnce }, worker))
    return removed
  }

  /**
   * Removes one version and returns whether it was removed. A store that cannot be opened, because the operator no longer permits its address, counts
   * as a store that does not answer.
   */
  async #removeOne(row: DoomedRow, opened: Promise<ConfiguredStore | null>): Promise<boolean> {
    const { db, log, clock, resting } = this.#deps
    const { orgId, key, seq, objectId } = row
    try {
      const configured = await opened
      if (objectId !== null) await configured?.store.delete(versionKey(orgId, objectId))
      await db.exec(removeDoomed, orgId, key, seq)
      resting.worked(orgId)
      return true
    } catch (error) {
      resting.failed(orgId, clock.nowMs())
      log.warn('memory.version_not_removed', { orgId, error })
      await this.#postpone(row)
      return false
    }
  }

  async #postpone({ orgId, key, seq }: DoomedRow): Promise<void> {
    const { db, clock } = this.#deps
    await db.exec(postponeDoomed, orgId, key, seq, new Date(clock.nowMs() + againMs))
  }
}
