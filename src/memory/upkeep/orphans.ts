/** Removes objects under the organisation's prefix that nothing refers to: old versions without a row in the database, and leftovers of probes. */
import type { Db } from '../../platform/db/db.ts'
import type { ConfiguredStore } from '../access/memory-call.ts'
import { probePrefix } from '../config/store-probe.ts'
import { joinKey } from '../memory-key.ts'
import { versionsPrefix } from '../objects/version-keeper.ts'
import type { ListedObject } from '../stores/object-store.ts'
import { knownVersions } from './reconcile-queries.ts'

/**
 * Minimum age of an object to remove. A younger object may belong to a running write or probe. The time is longer than any of these lasts, with room for a
 * wrong clock.
 */
const ageMsMin = 60 * 60_000
const deletesAtOnce = 8

/** Collects objects outside the scopes that a walk finds, and removes those that nothing refers to. Other objects of the bucket's owner are not touched. */
export class OrphanRemoval {
  readonly #db: Db
  readonly #configured: ConfiguredStore
  readonly #youngestMs: number
  #probes: string[] = []
  #versions: string[] = []
  removed = 0

  /** `nowMs` is a time of this machine's clock. The store's clock differs by the skew that the probe found. */
  constructor(db: Db, configured: ConfiguredStore, nowMs: number) {
    this.#db = db
    this.#configured = configured
    this.#youngestMs = nowMs + Number(configured.row.clockSkewMs) - ageMsMin
  }

  see(key: string, object: ListedObject): void {
    if (object.modifiedMs > this.#youngestMs) return
    if (key.startsWith(probePrefix)) this.#probes.push(key)
    else if (key.startsWith(versionsPrefix)) this.#versions.push(key.slice(versionsPrefix.length))
  }

  /** Removes the unknown objects that were collected so far. Throws ObjectStoreError. */
  async remove(signal: AbortSignal): Promise<void> {
    const { row, store } = this.#configured
    const names = this.#versions
    const known = names.length === 0 ? [] : await this.#db.many(knownVersions, row.orgId, names)
    const isKnown = new Set(known.map(({ name }) => name))
    const left = [...this.#probes, ...names.filter(name => !isKnown.has(name)).map(name => versionsPrefix + name)].values()
    this.#probes = []
    this.#versions = []
    const worker = async (): Promise<void> => {
      for (const key of left) {
        await store.delete(joinKey(row.orgId, key), { signal })
        this.removed++
      }
    }
    await Promise.all(Array.from({ length: deletesAtOnce }, worker))
  }
}
