/** Memory objects: read, write, delete, list. Scope comes before existence everywhere, so a refusal says nothing about what is there. */
import { createHash } from 'node:crypto'
import type { Clock } from '../platform/clock.ts'
import { fail, type GatewayError } from '../platform/errors.ts'
import type { BearerPrincipal } from '../platform/principal.ts'
import { KeyQueue, QueueTimeoutError } from './key-queue.ts'
import { type Intent, keyWaitMs, type MemoryIndex } from './memory-index.ts'
import { joinKey, type MemoryKey, parseKey, parsePrefix, relativeKey } from './memory-key.ts'
import { isStoreError, type ObjectHead, type ObjectStore, ObjectStoreError, type PutOptions } from './object-store.ts'
import { holds, type Precondition, preconditionOf } from './preconditions.ts'
import { type Author, type AuthorView, authorInMetadata, authorInRow, authorOf, metadataOf, metaHeaders, writtenMsOf } from './provenance.ts'
import type { StoreRow } from './queries.ts'
import { callerOf, isExpired, listPrefixes, mayRead, mayWrite } from './scopes.ts'

/** Who asks, and how long there is somebody to answer. */
export interface MemoryCall {
  readonly principal: BearerPrincipal
  readonly agentLabel: string | null
  readonly signal: AbortSignal
}

export interface Conditions {
  readonly ifMatch?: string | undefined
  readonly ifNoneMatch?: string | undefined
}

export interface ReadResult {
  readonly bytes: Buffer
  readonly etag: string
  readonly modified: Date
  /** Provenance as reply headers. */
  readonly metaHeaders: Readonly<Record<string, string>>
}

export interface ListEntry {
  /** As `?key=` takes it. */
  readonly key: string
  readonly size: number
  readonly modified: string
  readonly etag: string
  readonly author: AuthorView | null
}

export interface ConfiguredStore {
  readonly row: StoreRow
  readonly store: ObjectStore
}

export interface MemoryObjectsDeps {
  readonly clock: Clock
  readonly index: MemoryIndex
  readonly objectBytesMax: number
  /** Life of an intent: the store's part of a write is cut off well before that. */
  readonly intentMs: number
  /** Throws `memory_not_configured`. */
  configured(orgId: number): Promise<ConfiguredStore>
  /** The registered agent that a label names; null when it names none. */
  agentByLabel(orgId: number, label: string): { readonly status: 'active' | 'revoked' } | null | Promise<{ readonly status: 'active' | 'revoked' } | null>
}

/** Pages of one list: a million keys. */
const listPagesMax = 1000

export class MemoryObjects {
  readonly #deps: MemoryObjectsDeps
  readonly #queue: KeyQueue

  constructor(deps: MemoryObjectsDeps) {
    this.#deps = deps
    this.#queue = new KeyQueue(deps.clock)
  }

  /** Throws `memory_not_configured`, `bad_memory_key`, `forbidden`, `not_found`, `payload_too_large`, `memory_store_failed`. */
  async read(call: MemoryCall, keyText: string): Promise<ReadResult> {
    const { orgId } = call.principal
    const { row, store } = await this.#deps.configured(orgId)
    const key = parseKey(keyText)
    if (!mayRead(callerOf(call.principal), key)) throw outsideScope('read')
    try {
      const found = await store.get(joinKey(orgId, key), { signal: call.signal, sizeBytesMax: this.#deps.objectBytesMax })
      const writtenMs = writtenMsOf(found)
      if (isExpired(key, writtenMs, row.journalTtlDays, this.#deps.clock.nowMs())) throw noObject()
      return { bytes: found.bytes, etag: found.etag, modified: new Date(writtenMs), metaHeaders: metaHeaders(found.metadata) }
    } catch (error) {
      if (isStoreError(error, 'not-found')) throw noObject()
      if (isStoreError(error, 'too-large'))
        throw fail('payload_too_large', { message: `The stored object is larger than the ${this.#deps.objectBytesMax} bytes that this gateway reads.` })
      throw storeFailure(error)
    }
  }

  /** The new etag. Throws what `read` throws (but `not_found`), and `agent_revoked_label`, `bad_request`, `memory_conflict`, `memory_busy`, `memory_quota_exceeded`. */
  async write(call: MemoryCall, keyText: string, bytes: Buffer, conditions: Conditions = {}): Promise<{ etag: string }> {
    const { target, precondition } = await this.#admit(call, keyText, conditions)
    if (bytes.length > this.#deps.objectBytesMax)
      throw fail('payload_too_large', { message: `A memory object has at most ${this.#deps.objectBytesMax} bytes; this one has ${bytes.length}.` })
    const sha256 = createHash('sha256').update(bytes).digest('hex')
    return this.#withKey(target, { kind: 'put', sha256, sizeBytes: bytes.length }, async (intent, signal) => {
      const conditional = await this.#conditional(target, precondition, target.row.casPut, signal)
      const metadata = metadataOf(target.author, { writeId: intent.writeId, sha256, writtenAt: intent.startedAt })
      const etag = await this.#put(target, intent, bytes, { ...conditional, metadata, contentType: 'text/plain; charset=utf-8', signal })
      if (!(await this.#deps.index.settlePut(intent, etag))) throw lostIntent()
      return { etag }
    })
  }

  /** Also succeeds when there is nothing of that key. Throws what `write` throws (but sizes and quota). */
  async remove(call: MemoryCall, keyText: string, conditions: Conditions = {}): Promise<void> {
    const { target, precondition } = await this.#admit(call, keyText, conditions)
    if (precondition.kind === 'absent') throw fail('bad_request', { message: 'If-None-Match has no meaning for a deletion.' })
    await this.#withKey(target, { kind: 'delete', sha256: null, sizeBytes: 0 }, async (intent, signal) => {
      const { ifMatch } = await this.#conditional(target, precondition, target.row.casDelete, signal)
      try {
        await target.store.delete(target.storeKey, { signal, ...(ifMatch === undefined ? {} : { ifMatch }) })
      } catch (error) {
        if (isStoreError(error, 'precondition-failed')) throw await this.#conflict(target)
        throw error
      }
      if (!(await this.#deps.index.settleDelete(intent))) throw lostIntent()
    })
  }

  /** Every readable key under the prefix, by key. What the store holds is what is listed; the index says who wrote it. */
  async list(call: MemoryCall, prefixText: string): Promise<ListEntry[]> {
    const { orgId } = call.principal
    const { row, store } = await this.#deps.configured(orgId)
    const prefixes = listPrefixes(callerOf(call.principal), parsePrefix(prefixText))
    const entries: ListEntry[] = []
    try {
      for (const prefix of prefixes) await this.#listInto(entries, call, row, store, prefix)
    } catch (error) {
      throw storeFailure(error)
    }
    return entries.sort((a, b) => Buffer.compare(Buffer.from(a.key), Buffer.from(b.key)))
  }

  async #listInto(entries: ListEntry[], call: MemoryCall, row: StoreRow, store: ObjectStore, prefix: string): Promise<void> {
    const { orgId } = call.principal
    const nowMs = this.#deps.clock.nowMs()
    let startAfter: string | undefined
    for (let pages = 0; pages < listPagesMax; pages++) {
      const page = await store.list({ prefix: joinKey(orgId, prefix), signal: call.signal, ...(startAfter === undefined ? {} : { startAfter }) })
      const listed = page.objects.flatMap(object => {
        const key = relativeKey(orgId, object.key)
        return key === null || key.endsWith('/') ? [] : [{ ...object, key }]
      })
      const first = listed[0]
      const last = listed.at(-1)
      const known = first === undefined || last === undefined ? new Map() : await this.#deps.index.between(orgId, first.key, last.key)
      for (const object of listed) {
        const indexed = known.get(object.key)
        // A row of another etag speaks of an object that the bucket's owner has replaced since.
        const author = indexed?.etag === object.etag ? indexed : undefined
        const writtenMs = author?.writtenAt.getTime() ?? object.modifiedMs
        if (isExpired(object.key, writtenMs, row.journalTtlDays, nowMs)) continue
        entries.push({
          key: object.key,
          size: object.sizeBytes,
          modified: new Date(writtenMs).toISOString(),
          etag: object.etag,
          author: author === undefined ? null : authorInRow(author),
        })
      }
      if (page.next === null) return
      startAfter = page.next
    }
    throw fail('memory_store_failed', { message: 'There are too many objects under this prefix to list. Ask for a narrower one.' })
  }

  /** What comes before any change: configured, key, scope, label, conditions, in this order. */
  async #admit(call: MemoryCall, keyText: string, conditions: Conditions): Promise<{ target: Target; precondition: Precondition }> {
    const { principal, signal } = call
    const { row, store } = await this.#deps.configured(principal.orgId)
    const key = parseKey(keyText)
    if (!mayWrite(callerOf(principal), key)) throw outsideScope('write')
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
    what: { kind: 'put' | 'delete'; sha256: string | null; sizeBytes: number },
    work: (intent: Intent, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const { clock, index, intentMs } = this.#deps
    const run = async (): Promise<T> => {
      const intent = await index
        .take({ orgId: target.orgId, key: target.key, generation: target.row.generation, author: target.author, signal: target.signal, ...what })
        .catch((error: unknown) => {
          throw storeFailure(error)
        })
      // Nobody may resolve the intent while its call is still on the way to the store. A client that goes away does not stop a write.
      const limit = new AbortController()
      const cancel = clock.after(Math.ceil(intentMs * 0.75), () =>
        limit.abort(new ObjectStoreError('unavailable', 'the store took too long', { mayHaveHappened: true })),
      )
      try {
        return await work(intent, limit.signal)
      } catch (error) {
        if (error instanceof ObjectStoreError && error.mayHaveHappened) await index.doubt(intent)
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

interface Target {
  readonly orgId: number
  readonly key: MemoryKey
  readonly storeKey: string
  readonly row: StoreRow
  readonly store: ObjectStore
  readonly author: Author
  readonly signal: AbortSignal
}

function noObject(): GatewayError {
  return fail('not_found', { message: 'There is no memory object of that key.' })
}

function outsideScope(verb: string): GatewayError {
  return fail('forbidden', { message: `This credential may not ${verb} under that path. GET /v1/me/memory/paths lists its scopes.` })
}

function lostIntent(): GatewayError {
  return fail('memory_store_failed', {
    message: 'This call took too long, or the store was configured anew while it ran. Read the object to see what is there.',
  })
}

function conflictOf(head: ObjectHead | null): GatewayError {
  const extra =
    head === null
      ? { current_etag: null, modified: null, author: null }
      : { current_etag: head.etag, modified: new Date(writtenMsOf(head)).toISOString(), author: authorInMetadata(head.metadata) }
  return fail('memory_conflict', { extra })
}

/** What a caller sees of a store that failed. Anything that is not the store's doing passes. */
function storeFailure(error: unknown): unknown {
  return error instanceof ObjectStoreError ? fail('memory_store_failed', { cause: error }) : error
}
