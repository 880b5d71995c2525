/**
 * The index of an organisation's objects, and the intents that make a write atomic over two systems: reserve in the database, write to the store,
 * settle in the database. No transaction is open during a call to the store.
 */
import type { Clock } from '../../../platform/clock.ts'
import type { Db } from '../../../platform/db/db.ts'
import { fail } from '../../../platform/errors.ts'
import type { Ids } from '../../../platform/values/ids.ts'
import type { ChangeAction, ConfiguredStore } from '../../access/memory-call.ts'
import { joinKey } from '../../memory-key.ts'
import type { Author } from '../../provenance.ts'
import {
  doubtIntent,
  expiredIntents,
  findIntent,
  findWriteId,
  type IntentRow,
  type ObjectRow,
  objectsOf,
  releaseKey,
  settleDelete,
  settlePut,
  type TakenRow,
  takeKey,
} from '../queries.ts'
import { type Before, type Kept, keptIn, versionKey } from '../version-keeper.ts'
import { keptParameters } from '../version-settling.ts'

/** The exclusive right of this call to a key, until it settles or releases it. */
export interface Intent {
  readonly orgId: number
  readonly key: string
  readonly kind: 'put' | 'delete'
  readonly writeId: string
  readonly startedAt: Date
  /** The entry of the index for the key. Null when there is none. */
  readonly before: Before | null
}

/** The facts that the owner of a settled or released intent has to know. */
export interface Settled {
  /** Whether another process waits for the key. */
  readonly isWanted: boolean
}

/** The store was reconfigured after the caller read its configuration. The key was not taken. */
export class StoreMovedError extends Error {
  override readonly name = 'StoreMovedError'
}

export interface TakeRequest {
  readonly orgId: number
  readonly key: string
  readonly kind: 'put' | 'delete'
  /** The kind of change that the history of the object will show. */
  readonly how: Exclude<ChangeAction, 'delete'>
  readonly generation: number
  readonly author: Author
  /** SHA-256 in hex, and number of bytes, of the new content. They are null and 0 for a deletion. */
  readonly sha256: string | null
  readonly sizeBytes: number
  readonly signal: AbortSignal
  /** Maximum wait for another writer. The default is `keyWaitMs`. */
  readonly waitMs?: number
  /** Is called at each poll that finds another writer. An error that it throws ends the wait. */
  readonly whileBusy?: () => Promise<void>
}

export interface MemoryIndexDeps {
  readonly db: Db
  readonly clock: Clock
  readonly ids: Ids
  /** Time after which an intent expires, because its process may have died. */
  readonly intentMs: number
  /** Returns the store of an organisation as it is configured now. Returns null when it has none. */
  storeOf(orgId: number): Promise<ConfiguredStore | null>
  /** Notifies every process that there is a change to read. */
  announce(): void
}

type IntentId = Pick<IntentRow, 'orgId' | 'key' | 'writeId'>

/** Maximum wait for another writer of the same key before `memory_busy`. The project chose the number. */
export const keyWaitMs = 5_000
const pollMs = 20
const sweepMax = 1_000
const sweepPerOrgMax = 50

export class MemoryIndex {
  readonly #deps: MemoryIndexDeps

  constructor(deps: MemoryIndexDeps) {
    this.#deps = deps
  }

  /** Takes the key and reserves the bytes. Throws `memory_busy`, `memory_quota_exceeded`, StoreMovedError. */
  async take(request: TakeRequest): Promise<Intent> {
    const { clock, ids } = this.#deps
    const deadlineMs = clock.monotonicMs() + (request.waitMs ?? keyWaitMs)
    for (let tries = 1; ; tries++) {
      const startedAt = new Date(clock.nowMs())
      const id = { orgId: request.orgId, key: request.key, kind: request.kind, writeId: ids.uuidv7(startedAt.getTime()), startedAt }
      const found = await this.#insert(request, id)
      if (found.outcome === 'taken') return { ...id, before: found.etag === null ? null : { etag: found.etag, writeId: found.writeId } }
      if (found.outcome === 'full') throw fail('memory_quota_exceeded')
      if (found.outcome === 'moved') throw new StoreMovedError('the store was reconfigured')
      if (found.busyUntil !== null && found.busyUntil.getTime() <= clock.nowMs()) await this.#resolveOther(request)
      await request.whileBusy?.()
      if (clock.monotonicMs() >= deadlineMs) throw fail('memory_busy', { retryAfterSeconds: 1 })
      await clock.sleep(pollMs * Math.min(1 + tries / 10, 3) * (0.5 + ids.random()), request.signal)
    }
  }

  #insert(request: TakeRequest, id: { readonly writeId: string; readonly startedAt: Date }): Promise<TakenRow> {
    const { author } = request
    const expiresAt = new Date(id.startedAt.getTime() + this.#deps.intentMs)
    return this.#deps.db.one(
      takeKey,
      request.orgId,
      request.key,
      request.kind,
      request.how,
      id.writeId,
      request.generation,
      request.sha256,
      BigInt(request.sizeBytes),
      author.userId,
      author.keyId,
      author.agentId,
      author.agentName,
      author.agentLabel,
      id.startedAt,
      expiresAt,
    )
  }

  /** Resolves the intent of the key when no process owns it any more. */
  async #resolveOther({ orgId, key }: TakeRequest): Promise<void> {
    const other = await this.#deps.db.maybe(findIntent, orgId, key)
    if (other !== null && other.expiresAt.getTime() <= this.#deps.clock.nowMs()) await this.resolve(other)
  }

  /** Records a write that the store has done. Returns null when the intent is gone, because another process resolved it or the store was reconfigured. */
  async settlePut(intent: IntentId, etag: string, kept: Kept, versionsMax: number): Promise<Settled | null> {
    return this.#told(await this.#deps.db.maybe(settlePut, intent.orgId, intent.key, intent.writeId, ...keptParameters(kept, versionsMax), etag))
  }

  /** Records a deletion, as `settlePut` does for a write. With `versionsMax` 0 it removes the whole history of the key. */
  async settleDelete(intent: IntentId, kept: Kept, versionsMax: number): Promise<Settled | null> {
    return this.#told(await this.#deps.db.maybe(settleDelete, intent.orgId, intent.key, intent.writeId, ...keptParameters(kept, versionsMax)))
  }

  #told(settled: Settled | null): Settled | null {
    if (settled !== null) this.#deps.announce()
    return settled
  }

  /** Gives back the key and the reservation after a call that changed nothing. Returns null when the intent is gone. */
  release(intent: IntentId): Promise<Settled | null> {
    return this.#deps.db.maybe(releaseKey, intent.orgId, intent.key, intent.writeId)
  }

  /** Leaves the intent to the next writer or the sweep, because the result of the call is not known. */
  async doubt(intent: Intent): Promise<void> {
    await this.#deps.db.exec(doubtIntent, intent.orgId, intent.key, intent.writeId, new Date(this.#deps.clock.nowMs()))
  }

  /** Reads the store to find how a write ended, and settles or releases the intent. Throws ObjectStoreError when the store does not answer. */
  async resolve(intent: Pick<IntentRow, 'orgId' | 'key' | 'kind' | 'how' | 'writeId'>): Promise<'settled' | 'released'> {
    const configured = await this.#deps.storeOf(intent.orgId)
    if (configured !== null) {
      const { row, store } = configured
      const head = await store.head(joinKey(intent.orgId, intent.key))
      const kept = async (): Promise<Kept> => {
        const known = await this.#deps.db.maybe(findWriteId, intent.orgId, intent.key)
        return keptIn(store, intent.orgId, intent.writeId, known?.writeId ?? null)
      }
      if (intent.kind === 'put' && head?.metadata['br-write-id'] === intent.writeId) {
        await this.settlePut(intent, head.etag, await kept(), row.historyVersions)
        return 'settled'
      }
      if (intent.kind === 'delete' && head === null) {
        await this.settleDelete(intent, await kept(), intent.how === 'expire' ? 0 : row.historyVersions)
        return 'settled'
      }
      await store.delete(versionKey(intent.orgId, intent.writeId))
    }
    await this.release(intent)
    return 'released'
  }

  /** Returns intents whose owner is gone, oldest first, of every organisation that is not in `except`. */
  expired(nowMs: number, except: readonly number[]): Promise<IntentRow[]> {
    return this.#deps.db.many(expiredIntents, new Date(nowMs), sweepMax, sweepPerOrgMax, except)
  }

  /** Returns the rows of these keys. */
  async of(orgId: number, keys: readonly string[]): Promise<Map<string, ObjectRow>> {
    return new Map((await this.#deps.db.many(objectsOf, orgId, keys)).map(row => [row.key, row]))
  }
}
