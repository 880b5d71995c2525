/**
 * Compares a bucket with its index and corrects the index. It finds objects that were added, replaced or removed without the gateway, and objects that
 * nothing refers to. For each difference it takes the key as a write does, reads the object again from the store, and only then corrects the index. So
 * running writes, other comparisons and slow lists do no harm. No transaction is open during a call to the store, and the process holds one page of the
 * bucket and one of the index. The regular job compares a store in turns and saves its position, so that a large or slow store does not delay others.
 * Decisions 0222, 0464 and 0495 say why.
 */
import type { Clock } from '../../platform/clock.ts'
import type { Db } from '../../platform/db/db.ts'
import { claimDue } from '../../platform/db/jobs.ts'
import { fail } from '../../platform/errors.ts'
import type { Log } from '../../platform/observe/log.ts'
import type { Ids } from '../../platform/values/ids.ts'
import type { ConfiguredStore } from '../access/memory-call.ts'
import type { StoreJobs } from '../config/store-jobs.ts'
import { basePrefixOf, isServedKey, relativeKey } from '../memory-key.ts'
import { storeFailure } from '../objects/object-failures.ts'
import { dueReconcile } from '../objects/queries.ts'
import { withinStoreTime } from '../store-time.ts'
import type { ListedObject, ListPage } from '../stores/object-store.ts'
import { OrphanRemoval } from './orphans.ts'
import { type Counts, Healing, keysAtOnce } from './reconcile-healing.ts'
import {
  claimReconciles,
  clearPlace,
  countIndexed,
  countUsage,
  findPlace,
  indexedAfter,
  lockUsage,
  markReconciled,
  type ReconcilePlace,
  savePlace,
} from './reconcile-queries.ts'
import { ReconcileTurns, type Yield } from './reconcile-turns.ts'

/** How often the job looks for stores that are due. */
export const reconcileEveryMs = 5 * 60_000
/** How often one store is compared without a request. */
export const reconcileStoreEveryMs = 24 * 60 * 60_000
/**
 * Time until a store is tried again after it failed, or after the process that compared it died. It is also the maximum time of a comparison that an admin
 * requested.
 */
const retryMs = 60 * 60_000
/** Maximum time of a turn. After this time the job begins no further page of the store. */
const turnMs = 60_000
/** The job aborts a page after this time, because a store that answers too slowly for one page has failed. */
const turnMsMax = 2 * turnMs
/** Time until a store is due again after its turn. Stores that were due before come first. */
const nextTurnMs = 60_000
/** Maximum time of a run of the job. After this time no further turn begins, because other work with stores waits for the run. */
const runMsMax = 3 * 60_000
/** Maximum number of stores that one process compares concurrently, so that a slow store does not delay the others. */
const storesAtOnce = 4
const indexPageRows = 1_000
const defaultBounds: ReconcileBounds = { correctedMax: 100_000, indexedMax: 500_000 }
/** Maximum number of pages of one walk, which is ten million objects. */
const pagesMax = 10_000

export interface ReconcileResult {
  /** Number of objects that the bucket listed. */
  readonly checked: number
  readonly added: number
  readonly changed: number
  readonly removed: number
  /** Number of differences that were not touched because a write has the key. */
  readonly skipped: number
  readonly orphans_removed: number
  /** Number of used bytes after the comparison. */
  readonly bytes_used: number
}

/** Bounds of the changes that comparisons make. */
export interface ReconcileBounds {
  /** Maximum number of objects that one comparison adds to the index or changes in it. The page that reaches this number is still completed. */
  readonly correctedMax: number
  /** Comparisons add no objects once the index of an organisation has this many. Writes ignore this bound. */
  readonly indexedMax: number
}

export interface ReconcileDeps {
  readonly db: Db
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly jobs: StoreJobs
  /** Time after which the keys of one chunk are free again, if the process dies. */
  readonly intentMs: number
  /** Returns the store as it is configured now. Returns null when there is none. */
  storeOf(orgId: number): Promise<ConfiguredStore | null>
  /** Probes the store again. Throws a GatewayError when it cannot be used. */
  reprobe(orgId: number): Promise<unknown>
  /** Notifies the other processes that there are changes. */
  announce(): void
  /** Returns the founder of an organisation. */
  founderOf(orgId: number): string
  /** When they are left out, the default bounds apply. */
  readonly bounds?: ReconcileBounds | undefined
}

/**
 * Where a comparison begins, and the monotonic time at which it yields to others. A null place means from the first key. A null time means that it runs to
 * the end.
 */
interface Walk {
  readonly place: ReconcilePlace | null
  readonly endMs: number | null
  /** Is called between chunks and pages. */
  readonly pass: Yield
  /** Number of objects in the index when the walk adds its first one. Null until then. */
  readonly indexed: { before: number | null }
  readonly signal: AbortSignal
}

/** A turn of the job has a time limit, so it does not yield earlier. */
const goOn: Yield = () => Promise.resolve()

export class Reconcile {
  readonly #deps: ReconcileDeps
  readonly #turns: ReconcileTurns
  readonly #healing: Healing
  readonly #bounds: ReconcileBounds

  constructor(deps: ReconcileDeps) {
    this.#deps = deps
    this.#bounds = deps.bounds ?? defaultBounds
    this.#turns = new ReconcileTurns(deps.clock, orgId => deps.founderOf(orgId))
    this.#healing = new Healing({ ...deps, turns: this.#turns })
  }

  /** Gives each store that is due a turn. A run takes at most some minutes. Several processes divide the stores between them. */
  async runDue(signal: AbortSignal): Promise<void> {
    const { db, clock, log } = this.#deps
    const claim = (): [Date, Date, number] => [new Date(clock.nowMs()), new Date(clock.nowMs() + retryMs), 1]
    const work = async ({ orgId }: { readonly orgId: number }): Promise<void> => {
      try {
        const result = await this.turn(orgId, signal)
        if (result.added + result.changed + result.removed + result.orphans_removed > 0) log.info('memory.reconciled', { orgId, ...result })
      } catch (error) {
        log.warn('memory.not_reconciled', { orgId, error })
      }
    }
    const endMs = clock.monotonicMs() + runMsMax
    const worker = async (): Promise<void> => {
      while (!signal.aborted && clock.monotonicMs() < endMs) if ((await claimDue(db, claimReconciles, claim, work, 1)) === 0) return
    }
    await Promise.all(Array.from({ length: storesAtOnce }, worker))
  }

  /**
   * Compares one bucket with its index now. In this process, only one organisation of each founder can do so at a time. Throws `memory_not_configured`,
   * `memory_store_failed`, `memory_busy`. Corrections before the error remain.
   */
  run(orgId: number, signal: AbortSignal): Promise<ReconcileResult> {
    const { clock, jobs } = this.#deps
    return this.#turns.run(orgId, pass =>
      jobs.run(orgId, () =>
        withinStoreTime(clock, signal, limited => this.#run(orgId, { place: null, endMs: null, pass, indexed: { before: null }, signal: limited }), retryMs),
      ),
    )
  }

  /**
   * Compares one bucket from the place that the last turn saved, for about `forMs` milliseconds, and saves the new place. A turn that starts from the
   * first key probes the store first. Throws the errors of `run`. After a failure the place does not change.
   */
  async turn(orgId: number, signal: AbortSignal, forMs = turnMs): Promise<ReconcileResult> {
    const { db, clock, jobs } = this.#deps
    const place = await db.maybe(findPlace, orgId)
    if (place === null) await this.#deps.reprobe(orgId)
    const endMs = clock.monotonicMs() + forMs
    return jobs.run(orgId, () =>
      withinStoreTime(clock, signal, limited => this.#run(orgId, { place, endMs, pass: goOn, indexed: { before: null }, signal: limited }), turnMsMax),
    )
  }

  async #run(orgId: number, walk: Walk): Promise<ReconcileResult> {
    const { db, clock } = this.#deps
    const configured = await this.#deps.storeOf(orgId)
    if (configured === null) throw fail('memory_not_configured')
    const { generation } = configured.row
    const counts: Counts = { checked: 0, added: 0, changed: 0, removed: 0, skipped: 0 }
    const orphans = new OrphanRemoval(db, configured, clock.nowMs())
    let isWhole = false
    try {
      isWhole = await this.#walk(configured, counts, orphans, walk)
    } catch (error) {
      throw storeFailure(error)
    } finally {
      if (counts.added + counts.changed + counts.removed > 0) this.#deps.announce()
    }
    const { usedBytes } = await db.tx(async tx => {
      await tx.one(lockUsage, orgId)
      return tx.one(countUsage, orgId)
    })
    const nowMs = clock.nowMs()
    if (isWhole) await db.exec(markReconciled, orgId, generation, new Date(nowMs), new Date(nowMs + reconcileStoreEveryMs))
    else await db.exec(dueReconcile, orgId, generation, new Date(nowMs + nextTurnMs))
    return { ...counts, orphans_removed: orphans.removed, bytes_used: Number(usedBytes) }
  }

  /** Compares page by page. Returns whether the walk reached the end of the bucket. A walk with an end time saves its place after each page. */
  async #walk(configured: ConfiguredStore, counts: Counts, orphans: OrphanRemoval, walk: Walk): Promise<boolean> {
    const { db, clock } = this.#deps
    const { row, store } = configured
    const { place, endMs, pass, signal } = walk
    let startAfter = place?.after
    for (let pages = place?.pages ?? 0; pages < pagesMax; pages++) {
      signal.throwIfAborted()
      const page: ListPage = await store.list({ prefix: basePrefixOf(row.orgId), signal, ...(startAfter === undefined ? {} : { startAfter }) })
      const listed = new Map<string, ListedObject>()
      for (const object of page.objects) {
        const key = relativeKey(row.orgId, object.key)
        if (key === null) continue
        if (isServedKey(key)) listed.set(key, object)
        else orphans.see(key, object)
      }
      counts.checked += listed.size
      const { correctedMax } = this.#bounds
      if ((place?.corrected ?? 0) + counts.added + counts.changed > correctedMax) {
        await db.exec(clearPlace, row.orgId)
        const message = `More than ${correctedMax} objects of this store were unknown to the gateway or had changed. They are corrected. Compare again.`
        throw fail('memory_store_failed', { message })
      }
      await orphans.remove(signal)
      const after = startAfter === undefined ? '' : (relativeKey(row.orgId, startAfter) ?? '')
      const upTo = page.next === null ? null : (relativeKey(row.orgId, page.next) ?? '')
      await this.#comparePage(configured, listed, after, upTo, counts, walk)
      await pass()
      if (page.next === null) return true
      startAfter = page.next
      if (endMs === null) continue
      await db.exec(savePlace, row.orgId, row.generation, startAfter, pages + 1, (place?.corrected ?? 0) + counts.added + counts.changed)
      if (clock.monotonicMs() >= endMs) return false
    }
    await db.exec(clearPlace, row.orgId)
    throw fail('memory_store_failed', { message: 'There are too many objects in this store to compare.' })
  }

  /** Checks one page more closely, in chunks: the keys for which the bucket and the index differ. */
  async #comparePage(
    configured: ConfiguredStore,
    listed: Map<string, ListedObject>,
    after: string,
    upTo: string | null,
    counts: Counts,
    { pass, indexed, signal }: Walk,
  ): Promise<void> {
    let differing: string[] = []
    const see = async (key: string): Promise<void> => {
      differing.push(key)
      if (differing.length < keysAtOnce) return
      await this.#healing.heal(configured, differing, counts, signal)
      differing = []
      await pass()
    }
    let cursor = after
    for (;;) {
      const known = await this.#deps.db.many(indexedAfter, configured.row.orgId, cursor, upTo, indexPageRows)
      for (const row of known) {
        const object = listed.get(row.key)
        listed.delete(row.key)
        if (object?.etag !== row.etag || BigInt(object.sizeBytes) !== row.sizeBytes) await see(row.key)
      }
      const last = known.at(-1)
      if (known.length < indexPageRows || last === undefined) break
      cursor = last.key
    }
    if (listed.size > 0) await this.#checkRoom(configured.row.orgId, listed.size, counts, indexed)
    for (const key of listed.keys()) await see(key)
    if (differing.length > 0) await this.#healing.heal(configured, differing, counts, signal)
  }

  /** Throws `memory_store_failed` when the index has no room for `more` further objects. */
  async #checkRoom(orgId: number, more: number, counts: Counts, indexed: Walk['indexed']): Promise<void> {
    const { db } = this.#deps
    const { indexedMax } = this.#bounds
    indexed.before ??= (await db.one(countIndexed, orgId, indexedMax)).count - counts.added + counts.removed
    if (indexed.before + counts.added - counts.removed + more <= indexedMax) return
    await db.exec(clearPlace, orgId)
    throw fail('memory_store_failed', {
      message: `The index of this store would have more than ${indexedMax} objects, so no others of the bucket are added. Remove objects.`,
    })
  }
}
