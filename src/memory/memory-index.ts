/**
 * The index of an organisation's objects, and the intents that make a write one thing over two systems: reserve here, write to the
 * store, settle here. No transaction is open while the store is asked.
 */
import type { Clock } from '../platform/clock.ts'
import type { Db } from '../platform/db.ts'
import { fail } from '../platform/errors.ts'
import type { Ids } from '../platform/ids.ts'
import { joinKey } from './memory-key.ts'
import type { ObjectStore } from './object-store.ts'
import type { Author } from './provenance.ts'
import {
  doubtIntent,
  expiredIntents,
  findIntent,
  findStore,
  type IntentRow,
  type ObjectRow,
  objectsBetween,
  releaseKey,
  reserveBytes,
  settleDelete,
  settlePut,
  takeKey,
} from './queries.ts'

/** A key that this call has to itself until it settles or releases. */
export interface Intent {
  readonly orgId: number
  readonly key: string
  readonly kind: 'put' | 'delete'
  readonly writeId: string
  readonly startedAt: Date
}

export interface TakeRequest {
  readonly orgId: number
  readonly key: string
  readonly kind: 'put' | 'delete'
  readonly generation: number
  readonly author: Author
  /** SHA-256 in hex and bytes of what is written; null and 0 for a deletion. */
  readonly sha256: string | null
  readonly sizeBytes: number
  readonly signal: AbortSignal
}

export interface MemoryIndexDeps {
  readonly db: Db
  readonly clock: Clock
  readonly ids: Ids
  /** Life of an intent whose process died. */
  readonly intentMs: number
  /** The store of an organisation as it is configured now; null when it has none. */
  storeOf(orgId: number): Promise<ObjectStore | null>
}

/** Longest wait for another writer of the same key before `memory_busy`. Ours. */
export const keyWaitMs = 5_000
const pollMs = 20
const sweepMax = 100

export class MemoryIndex {
  readonly #deps: MemoryIndexDeps

  constructor(deps: MemoryIndexDeps) {
    this.#deps = deps
  }

  /** Takes the key and reserves the bytes. Throws `memory_busy`, `memory_quota_exceeded`, `memory_store_failed` when the store was configured anew. */
  async take(request: TakeRequest): Promise<Intent> {
    const { db, clock, ids } = this.#deps
    const deadlineMs = clock.monotonicMs() + keyWaitMs
    for (let tries = 1; ; tries++) {
      const startedAt = new Date(clock.nowMs())
      const intent: Intent = { orgId: request.orgId, key: request.key, kind: request.kind, writeId: ids.uuidv7(startedAt.getTime()), startedAt }
      if (await this.#insert(request, intent)) {
        if (request.kind === 'put' && (await db.maybe(reserveBytes, intent.orgId, intent.key, intent.writeId)) === null) {
          await this.release(intent)
          throw fail('memory_quota_exceeded')
        }
        return intent
      }
      await this.#passBy(request)
      if (clock.monotonicMs() >= deadlineMs) throw fail('memory_busy', { retryAfterSeconds: 1 })
      await clock.sleep(Math.min(pollMs * tries, 200) * (0.5 + ids.random()), request.signal)
    }
  }

  async #insert(request: TakeRequest, intent: Intent): Promise<boolean> {
    const { author } = request
    const expiresAt = new Date(intent.startedAt.getTime() + this.#deps.intentMs)
    const taken = await this.#deps.db.exec(
      takeKey,
      intent.orgId,
      intent.key,
      intent.kind,
      intent.writeId,
      request.generation,
      request.sha256,
      BigInt(request.sizeBytes),
      author.userId,
      author.keyId,
      author.agentId,
      author.agentName,
      author.agentLabel,
      intent.startedAt,
      expiresAt,
    )
    return taken === 1
  }

  /** Why the key could not be taken: an intent that nobody owns any more is resolved; a store of another generation ends the wait. */
  async #passBy(request: TakeRequest): Promise<void> {
    const { db, clock } = this.#deps
    const other = await db.maybe(findIntent, request.orgId, request.key)
    if (other !== null) {
      if (other.expiresAt.getTime() <= clock.nowMs()) await this.resolve(other)
      return
    }
    const store = await db.maybe(findStore, request.orgId)
    if (store?.generation !== request.generation)
      throw fail('memory_store_failed', { message: 'The memory store was configured anew while this call ran. Try again.', shouldRetry: true })
  }

  /** Books a write that is in the store. False when the intent is gone: it was resolved by another, or the store was configured anew. */
  async settlePut(intent: Intent, etag: string): Promise<boolean> {
    return (await this.#deps.db.exec(settlePut, intent.orgId, intent.key, intent.writeId, etag)) === 1
  }

  async settleDelete(intent: Intent): Promise<boolean> {
    return (await this.#deps.db.exec(settleDelete, intent.orgId, intent.key, intent.writeId)) === 1
  }

  /** Gives key and reservation back after a call that changed nothing. */
  async release(intent: Intent): Promise<void> {
    await this.#deps.db.exec(releaseKey, intent.orgId, intent.key, intent.writeId)
  }

  /** Leaves the intent to whoever comes next: how the call ended is not known. */
  async doubt(intent: Intent): Promise<void> {
    await this.#deps.db.exec(doubtIntent, intent.orgId, intent.key, intent.writeId, new Date(this.#deps.clock.nowMs()))
  }

  /** Asks the store how a write ended, and books or releases it. Throws ObjectStoreError when the store does not say. */
  async resolve(intent: Pick<IntentRow, 'orgId' | 'key' | 'kind' | 'writeId'>): Promise<'settled' | 'released'> {
    const { db } = this.#deps
    const store = await this.#deps.storeOf(intent.orgId)
    const head = store === null ? null : await store.head(joinKey(intent.orgId, intent.key))
    if (store !== null && intent.kind === 'put' && head?.metadata['br-write-id'] === intent.writeId) {
      await db.exec(settlePut, intent.orgId, intent.key, intent.writeId, head.etag)
      return 'settled'
    }
    if (store !== null && intent.kind === 'delete' && head === null) {
      await db.exec(settleDelete, intent.orgId, intent.key, intent.writeId)
      return 'settled'
    }
    await db.exec(releaseKey, intent.orgId, intent.key, intent.writeId)
    return 'released'
  }

  /** Intents whose owner is gone, of every organisation, oldest first. */
  expired(nowMs: number): Promise<IntentRow[]> {
    return this.#deps.db.many(expiredIntents, new Date(nowMs), sweepMax)
  }

  /** Index rows of the keys from `first` to `last`, by key. */
  async between(orgId: number, first: string, last: string): Promise<Map<string, ObjectRow>> {
    return new Map((await this.#deps.db.many(objectsBetween, orgId, first, last)).map(row => [row.key, row]))
  }
}
