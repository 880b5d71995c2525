/**
 * Writes and deletes memory objects: the intent is in the database, the bytes go to the store, and the database settles the write. Decision 0050 says
 * why.
 */
import { createHash } from 'node:crypto'
import { fail } from '../../platform/errors.ts'
import { KeyQueue, QueueTimeoutError } from '../access/key-queue.ts'
import type { ChangeAction, Conditions, MemoryCall, RemoveExtras, WriteExtras } from '../access/memory-call.ts'
import { mayWrite } from '../access/path-rules.ts'
import { joinKey, type MemoryKey, parseKey, parseNewKey } from '../memory-key.ts'
import { type Precondition, preconditionOf } from '../preconditions.ts'
import { type Author, authorOf, clientMetadata, metadataOf } from '../provenance.ts'
import { isStoreError, type ObjectHead, type ObjectStore, ObjectStoreError } from '../stores/object-store.ts'
import { type ConditionalWrite, conditionFor, deleteUnder, holdsFor, putUnder } from './conditional-writes.ts'
import { isEntryKey } from './index/entry-names.ts'
import { type Intent, keyWaitMs, type Settled, StoreMovedError, type TakeRequest } from './index/memory-index.ts'
import type { MemoryObjectsDeps } from './object-deps.ts'
import { conflictOf, entryStands, lostIntent, movedAway, outsideScope, storeFailure, writeFailure } from './object-failures.ts'
import type { StoreRow } from './queries.ts'
import { VersionKeeper } from './version-keeper.ts'

/** How long this process leaves a key to writers of other processes that wait for it. The time is about two of their polls. */
const restMs = 60

/** The writing part of the object calls. */
export class MemoryWrites {
  readonly #deps: MemoryObjectsDeps
  readonly #queue: KeyQueue
  /** The last writes of this process to the keys for which other calls of this process wait. */
  readonly #lastWritten = new Map<string, { readonly turn: number; readonly head: ObjectHead }>()
  #turns = 0

  constructor(deps: MemoryObjectsDeps) {
    this.#deps = deps
    this.#queue = new KeyQueue(deps.clock)
  }

  /**
   * Writes the object and returns its new etag. Throws the errors of `read` except `not_found`, and `agent_revoked_label`, `bad_request`,
   * `memory_conflict`, `memory_busy`, `memory_quota_exceeded`.
   */
  write(call: MemoryCall, keyText: string, bytes: Buffer, conditions: Conditions = {}, extras: WriteExtras = {}): Promise<{ etag: string }> {
    return this.#onCurrentStore(call, () => this.#write(call, keyText, bytes, conditions, extras))
  }

  async #write(call: MemoryCall, keyText: string, bytes: Buffer, conditions: Conditions, extras: WriteExtras): Promise<{ etag: string }> {
    const { target, precondition } = await this.#admit(call, keyText, conditions, extras.action ?? 'put')
    if (bytes.length > this.#deps.objectBytesMax)
      throw fail('payload_too_large', { message: `A memory object has at most ${this.#deps.objectBytesMax} bytes; this one has ${bytes.length}.` })
    const sha256 = createHash('sha256').update(bytes).digest('hex')
    const how = extras.action ?? 'put'
    return this.#inTurn(target, precondition, async () => {
      const taken = await this.#take(target, { kind: 'put', how, sha256, sizeBytes: bytes.length, precondition })
      const { intent, keeper, signal } = taken
      try {
        const write = conditionalWrite(taken, precondition, target.row.casPut)
        const first = await conditionFor(write)
        if (mayReplace(target, precondition, intent)) await keeper.keep(signal)
        const metadata = {
          ...extras.metadata,
          ...clientMetadata(call.clientName),
          ...metadataOf(target.author, { writeId: intent.writeId, sha256, writtenAt: intent.startedAt }),
        }
        const etag = await putUnder(write, first, condition =>
          target.store.put(target.storeKey, bytes, { ...condition, metadata, contentType: 'text/plain; charset=utf-8', signal }),
        )
        const settled = await this.#deps.index.settlePut(intent, etag, keeper.handOver(), target.row.historyVersions)
        this.#settled(target, settled, { etag, sizeBytes: bytes.length, modifiedMs: intent.startedAt.getTime(), metadata })
        return { etag }
      } catch (error) {
        throw await this.#giveBack(taken, error, target.row.casPut)
      } finally {
        taken.cancelLimit()
      }
    })
  }

  /** Deletes the object. It also succeeds when there is no object of that key. Throws the errors of `write` except those of sizes and quota. */
  remove(call: MemoryCall, keyText: string, conditions: Conditions = {}, extras: RemoveExtras = {}): Promise<void> {
    return this.#onCurrentStore(call, () => this.#remove(call, keyText, conditions, extras))
  }

  async #remove(call: MemoryCall, keyText: string, conditions: Conditions, extras: RemoveExtras): Promise<void> {
    const { target, precondition } = await this.#admit(call, keyText, conditions, 'delete')
    if (precondition.kind === 'absent') throw fail('bad_request', { message: 'If-None-Match has no meaning for a deletion.' })
    const versionsMax = extras.erasesHistory === true ? 0 : target.row.historyVersions
    await this.#inTurn(target, precondition, async () => {
      const taken = await this.#take(target, { kind: 'delete', how: 'put', sha256: null, sizeBytes: 0, precondition })
      const { intent, keeper, signal } = taken
      try {
        const write = conditionalWrite(taken, precondition, target.row.casDelete)
        const first = await conditionFor(write)
        // A deletion also keeps an object that the index does not know. To ask the store whether there is such an object would cost as much as the copy.
        if (versionsMax > 0) await keeper.keep(signal)
        await deleteUnder(write, first, condition => target.store.delete(target.storeKey, { ...condition, signal }))
        this.#settled(target, await this.#deps.index.settleDelete(intent, keeper.handOver(), versionsMax))
      } catch (error) {
        throw await this.#giveBack(taken, error, target.row.casDelete)
      } finally {
        taken.cancelLimit()
      }
    })
  }

  /** Runs `work` a second time when the store was reconfigured and this process had not received the change yet. */
  async #onCurrentStore<T>(call: MemoryCall, work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof StoreMovedError)) throw error
    }
    this.#deps.forget(call.principal.orgId)
    try {
      return await work()
    } catch (error) {
      throw error instanceof StoreMovedError ? movedAway(error) : error
    }
  }

  /** Makes the checks before any change, in this order: configuration, key, scope, label, conditions. */
  async #admit(call: MemoryCall, keyText: string, conditions: Conditions, action: ChangeAction): Promise<{ target: Target; precondition: Precondition }> {
    const { principal, signal } = call
    const { row, store } = await this.#deps.configured(principal.orgId)
    const key = action === 'delete' ? parseKey(keyText) : parseNewKey(keyText)
    if (action === 'put' && isEntryKey(key)) throw entryStands()
    // The endpoint has checked that the promoter is an owner or admin. Records accept no other writes.
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

  /**
   * Runs the work of writers of one key in order. Writers of one process wait here. The database only has to order writers of different processes. Throws
   * `memory_busy`, `memory_conflict`.
   */
  async #inTurn<T>(target: Target, precondition: Precondition, work: () => Promise<T>): Promise<T> {
    const arrivedTurn = this.#turns
    const run = async (hasWaited: boolean): Promise<T> => {
      if (hasWaited) this.#refuseOverwritten(target, precondition, arrivedTurn)
      return work()
    }
    try {
      return await this.#queue.run(target.storeKey, run, keyWaitMs)
    } catch (error) {
      if (error instanceof QueueTimeoutError) throw fail('memory_busy', { retryAfterSeconds: 1, cause: error })
      throw error
    }
  }

  /** Takes the key and opens the intent of a write. The caller ends the write with `#settled` or `#giveBack`, and always calls `cancelLimit`. */
  async #take(target: Target, what: Taking): Promise<Taken> {
    const { clock, index, intentMs } = this.#deps
    const { orgId, key, author, signal, store, storeKey } = target
    const whileBusy = (): Promise<void> => refuseEarly(target, what.precondition)
    const intent = await index.take({ orgId, key, generation: target.row.generation, author, signal, whileBusy, ...what }).catch((error: unknown) => {
      throw writeFailure(error)
    })
    const keeper = new VersionKeeper({ store, orgId, storeKey, writeId: intent.writeId, before: intent.before })
    // The limit aborts the call before its intent expires, so that no other process resolves the intent while the call is still on its way to the store. A
    // client that disconnects does not stop a write.
    const limit = new AbortController()
    const cancelLimit = clock.after(Math.ceil(intentMs * 0.75), () =>
      limit.abort(new ObjectStoreError('unavailable', 'the store took too long', { mayHaveHappened: true })),
    )
    return { target, intent, keeper, signal: limit.signal, cancelLimit }
  }

  /** Remembers a settled write for the calls of this process that wait for its key. Throws when another process has resolved the intent. */
  #settled({ storeKey }: Target, settled: Settled | null, written?: ObjectHead): void {
    if (settled === null) throw lostIntent()
    this.#turns++
    if (written !== undefined && this.#queue.hasWaiters(storeKey)) this.#lastWritten.set(storeKey, { turn: this.#turns, head: written })
    else this.#lastWritten.delete(storeKey)
    if (settled.isWanted) this.#queue.rest(storeKey, restMs * (0.5 + this.#deps.ids.random()))
  }

  /**
   * Ends the intent of a write that failed: releases it, or leaves it unresolved when the store may have done the write. Returns the error for the caller.
   * `isGuarded` says whether the store would refuse a request of this write that arrives late, because of a condition.
   */
  async #giveBack({ intent, keeper }: Taken, error: unknown, isGuarded: boolean): Promise<unknown> {
    const { index } = this.#deps
    const isUnsure = keeper.isHandedOver || (error instanceof ObjectStoreError && error.mayHaveHappened)
    // Without such a condition, no other write may begin before the intent expires.
    const mustRunOut = isUnsure && !(keeper.isHandedOver || isGuarded) && isStoreError(error, 'unavailable')
    if (!mustRunOut) {
      if (isUnsure || !(await keeper.discard())) await index.doubt(intent)
      else await index.release(intent)
    }
    return writeFailure(error)
  }

  /**
   * Throws `memory_conflict` when another call of this process replaced the object while this one waited. When many writers compare and swap one object,
   * all except one fail. This check refuses them without a call to the store or the database.
   */
  #refuseOverwritten({ storeKey }: Target, precondition: Precondition, arrivedTurn: number): void {
    const last = this.#lastWritten.get(storeKey)
    if (!this.#queue.hasWaiters(storeKey)) this.#lastWritten.delete(storeKey)
    if (precondition.kind === 'etag' && last !== undefined && last.turn > arrivedTurn && !holdsFor(precondition, last.head)) throw conflictOf(last.head)
  }
}

function conditionalWrite({ target, intent, keeper, signal }: Taken, precondition: Precondition, isNative: boolean): ConditionalWrite {
  const { store, storeKey, row } = target
  const onUnknown = async (): Promise<void> => {
    if (row.historyVersions > 0) await keeper.keep(signal)
  }
  return { store, storeKey, precondition, before: intent.before, isNative, writeId: intent.writeId, signal, onUnknown }
}

/**
 * Throws `memory_conflict` for a call that waits for another process, when its precondition no longer holds. It reads the store although it does not own
 * the key.
 */
async function refuseEarly({ store, storeKey, signal }: Target, precondition: Precondition): Promise<void> {
  if (precondition.kind !== 'etag') return
  try {
    const head = await store.head(storeKey, { signal })
    if (!holdsFor(precondition, head)) throw conflictOf(head)
  } catch (error) {
    throw storeFailure(error)
  }
}

/**
 * Returns whether there may be an object to keep: the index knows one, or the caller's condition names one. For a new key, no call to the store is needed.
 */
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

/** The parameters with which a write takes its key. */
type Taking = Pick<TakeRequest, 'kind' | 'how' | 'sha256' | 'sizeBytes'> & { readonly precondition: Precondition }

/** A taken key, with the intent of the running write. */
interface Taken {
  readonly target: Target
  readonly intent: Intent
  readonly keeper: VersionKeeper
  /** Aborts a request to the store before the intent expires. */
  readonly signal: AbortSignal
  cancelLimit(): void
}
