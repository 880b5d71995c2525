/** Writing and deleting memory objects: intent here, bytes in the store, settled here. */
import { createHash } from 'node:crypto'
import { fail, type GatewayError } from '../platform/errors.ts'
import { KeyQueue, QueueTimeoutError } from './key-queue.ts'
import { type Intent, keyWaitMs, type TakeRequest } from './memory-index.ts'
import { joinKey, type MemoryKey, parseKey } from './memory-key.ts'
import { conflictOf, lostIntent, outsideScope, storeFailure } from './object-failures.ts'
import { isStoreError, type ObjectStore, ObjectStoreError, type PutOptions } from './object-store.ts'
import type { ChangeAction, Conditions, MemoryCall, MemoryObjectsDeps, RemoveExtras, WriteExtras } from './objects.ts'
import { holds, type Precondition, preconditionOf } from './preconditions.ts'
import { type Author, authorOf, metadataOf } from './provenance.ts'
import type { StoreRow } from './queries.ts'
import { mayWrite } from './scopes.ts'
import { VersionKeeper } from './version-keeper.ts'

/** The writing half of the object calls. */
export class MemoryWrites {
  readonly #deps: MemoryObjectsDeps
  readonly #queue: KeyQueue

  constructor(deps: MemoryObjectsDeps) {
    this.#deps = deps
    this.#queue = new KeyQueue(deps.clock)
  }

  /** The new etag. Throws what `read` throws (but `not_found`), and `agent_revoked_label`, `bad_request`, `memory_conflict`, `memory_busy`, `memory_quota_exceeded`. */
  async write(call: MemoryCall, keyText: string, bytes: Buffer, conditions: Conditions = {}, extras: WriteExtras = {}): Promise<{ etag: string }> {
    const { target, precondition } = await this.#admit(call, keyText, conditions, extras.action ?? 'put')
    if (bytes.length > this.#deps.objectBytesMax)
      throw fail('payload_too_large', { message: `A memory object has at most ${this.#deps.objectBytesMax} bytes; this one has ${bytes.length}.` })
    const sha256 = createHash('sha256').update(bytes).digest('hex')
    return this.#withKey(target, { kind: 'put', how: extras.action ?? 'put', sha256, sizeBytes: bytes.length }, async (intent, signal, keeper) => {
      const conditional = await this.#conditional(target, precondition, target.row.casPut, signal)
      if (mayReplace(target, precondition, intent)) await this.#keep(target, precondition, intent, keeper, signal)
      const metadata = { ...extras.metadata, ...metadataOf(target.author, { writeId: intent.writeId, sha256, writtenAt: intent.startedAt }) }
      const etag = await this.#put(target, intent, bytes, { ...conditional, metadata, contentType: 'text/plain; charset=utf-8', signal })
      if (!(await this.#deps.index.settlePut(intent, etag, keeper.handOver(), target.row.historyVersions))) throw lostIntent()
      return { etag }
    })
  }

  /** Also succeeds when there is nothing of that key. Throws what `write` throws (but sizes and quota). */
  async remove(call: MemoryCall, keyText: string, conditions: Conditions = {}, extras: RemoveExtras = {}): Promise<void> {
    const { target, precondition } = await this.#admit(call, keyText, conditions, 'delete')
    if (precondition.kind === 'absent') throw fail('bad_request', { message: 'If-None-Match has no meaning for a deletion.' })
    const versionsMax = extras.erasesHistory === true ? 0 : target.row.historyVersions
    await this.#withKey(target, { kind: 'delete', how: 'put', sha256: null, sizeBytes: 0 }, async (intent, signal, keeper) => {
      const { ifMatch } = await this.#conditional(target, precondition, target.row.casDelete, signal)
      // A deletion also keeps what the index does not know: to ask for it costs no more than to copy it.
      if (versionsMax > 0) await this.#keep(target, precondition, intent, keeper, signal)
      try {
        await target.store.delete(target.storeKey, { signal, ...(ifMatch === undefined ? {} : { ifMatch }) })
      } catch (error) {
        if (isStoreError(error, 'precondition-failed')) throw await this.#conflict(target)
        throw error
      }
      if (!(await this.#deps.index.settleDelete(intent, keeper.handOver(), versionsMax))) throw lostIntent()
    })
  }

  /** What comes before any change: configured, key, scope, label, conditions, in this order. */
  async #admit(call: MemoryCall, keyText: string, conditions: Conditions, action: ChangeAction): Promise<{ target: Target; precondition: Precondition }> {
    const { principal, signal } = call
    const { row, store } = await this.#deps.configured(principal.orgId)
    const key = parseKey(keyText)
    // Who promotes was checked as an admin, and records take no other writes.
    if (action !== 'promote' && !mayWrite(await this.#deps.callers.forKey(principal, key), key)) throw outsideScope('write')
    if (principal.kind === 'key' && call.agentLabel !== null) {
      const named = await this.#deps.agentByLabel(principal.orgId, call.agentLabel)
      if (named?.status === 'revoked') throw fail('agent_revoked_label')
    }
    const precondition = preconditionOf(conditions.ifMatch, conditions.ifNoneMatch)
    return {
      target: { orgId: principal.orgId, key, storeKey: joinKey(principal.orgId, key), row, store, author: authorOf(principal, call.agentLabel), signal },
      precondition,
    }
  }

  /** Runs `work` with the key taken; afterwards the intent is settled, released or left in doubt, never lost. */
  async #withKey<T>(
    target: Target,
    what: Pick<TakeRequest, 'kind' | 'how' | 'sha256' | 'sizeBytes'>,
    work: (intent: Intent, signal: AbortSignal, keeper: VersionKeeper) => Promise<T>,
  ): Promise<T> {
    const { clock, index, intentMs } = this.#deps
    const run = async (): Promise<T> => {
      const intent = await index
        .take({ orgId: target.orgId, key: target.key, generation: target.row.generation, author: target.author, signal: target.signal, ...what })
        .catch((error: unknown) => {
          throw storeFailure(error)
        })
      const keeper = new VersionKeeper({ store: target.store, orgId: target.orgId, storeKey: target.storeKey, writeId: intent.writeId, before: intent.before })
      // Nobody may resolve the intent while its call is still on the way to the store. A client that goes away does not stop a write.
      const limit = new AbortController()
      const cancel = clock.after(Math.ceil(intentMs * 0.75), () =>
        limit.abort(new ObjectStoreError('unavailable', 'the store took too long', { mayHaveHappened: true })),
      )
      try {
        return await work(intent, limit.signal, keeper)
      } catch (error) {
        if ((error instanceof ObjectStoreError && error.mayHaveHappened) || !(await keeper.discard())) await index.doubt(intent)
        else await index.release(intent)
        throw storeFailure(error)
      } finally {
        cancel()
      }
    }
    try {
      // Writers of one process wait here in order; only those of other processes meet in the database.
      return await this.#queue.run(target.storeKey, run, keyWaitMs)
    } catch (error) {
      if (error instanceof QueueTimeoutError) throw fail('memory_busy', { retryAfterSeconds: 1, cause: error })
      throw error
    }
  }

  /** Copies what the write will replace. A condition that cannot hold is refused before. */
  async #keep(target: Target, precondition: Precondition, intent: Intent, keeper: VersionKeeper, signal: AbortSignal): Promise<void> {
    if (intent.before !== null && !holds(precondition, intent.before.etag)) {
      const head = await target.store.head(target.storeKey, { signal })
      if (!holds(precondition, head?.etag ?? null)) throw conflictOf(head)
    }
    await keeper.keep(signal)
  }

  /** The conditions for the store's own call: its native form, or after a HEAD under the intent where the store has none. */
  async #conditional(target: Target, precondition: Precondition, isNative: boolean, signal: AbortSignal): Promise<Pick<PutOptions, 'ifMatch' | 'ifNoneMatch'>> {
    if (precondition.kind === 'none') return {}
    if (isNative && precondition.kind === 'absent') return { ifNoneMatch: '*' }
    const [only, ...others] = precondition.kind === 'etag' ? precondition.etags : []
    if (isNative && only !== undefined && others.length === 0) return { ifMatch: only }
    const head = await target.store.head(target.storeKey, { signal })
    if (!holds(precondition, head?.etag ?? null)) throw conflictOf(head)
    return isNative && head !== null ? { ifMatch: head.etag } : {}
  }

  /** Puts the bytes; a lost reply and a retry that met its own first attempt count as done when the store has our write id. */
  async #put(target: Target, intent: Intent, bytes: Buffer, options: PutOptions): Promise<string> {
    try {
      return (await target.store.put(target.storeKey, bytes, options)).etag
    } catch (error) {
      const isConflict = isStoreError(error, 'precondition-failed')
      if (!isConflict && !(error instanceof ObjectStoreError && error.mayHaveHappened)) throw error
      const head = await target.store.head(target.storeKey).catch(() => undefined)
      if (head?.metadata['br-write-id'] === intent.writeId) return head.etag
      throw isConflict ? conflictOf(head ?? null) : error
    }
  }

  async #conflict(target: Target): Promise<GatewayError> {
    return conflictOf(await target.store.head(target.storeKey).catch(() => null))
  }
}

/** Whether there may be something to keep: what the index knows, or what the caller says to have read. A new key costs no call. */
function mayReplace({ row }: Target, { kind }: Precondition, { before }: Intent): boolean {
  return row.historyVersions > 0 && kind !== 'absent' && (before !== null || kind !== 'none')
}

interface Target {
  readonly orgId: number
  readonly key: MemoryKey
  readonly storeKey: string
  readonly row: StoreRow
  readonly store: ObjectStore
  readonly author: Author
  readonly signal: AbortSignal
}
