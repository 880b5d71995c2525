/** Reads and lists memory objects. */
import { fail } from '../../platform/errors.ts'
import type { ListEntry, MemoryCall, ReadResult } from '../access/memory-call.ts'
import { isExpired, listPrefixes, mayRead } from '../access/path-rules.ts'
import { joinKey, keyBytesMax, type MemoryKey, parseKey, parsePrefix } from '../memory-key.ts'
import { metaHeaders, writtenMsOf } from '../provenance.ts'
import { withinStoreTime } from '../store-time.ts'
import { isStoreError, type ObjectStore, type StoredObject } from '../stores/object-store.ts'
import { afterAllBelow, KeyWalk, type KeyWalkOptions } from './index/key-walk.ts'
import { entryOf, type ListPageView, type ListParams, pageOf } from './index/list-page.ts'
import { cursorFrom, notOurCursor } from './index/page-cursor.ts'
import type { MemoryObjectsDeps } from './object-deps.ts'
import { noObject, outsideScope, storeFailure } from './object-failures.ts'

/**
 * Maximum number of keys of a list without pages, because the whole list is in memory. The next constant is the maximum number of characters of its
 * keys.
 */
const listKeysMax = 100_000
const listCharsMax = 20_000_000

/** The reading part of the object calls. */
export class MemoryReads {
  readonly #deps: MemoryObjectsDeps

  constructor(deps: MemoryObjectsDeps) {
    this.#deps = deps
  }

  /** Returns the object. Throws `memory_not_configured`, `bad_memory_key`, `forbidden`, `not_found`, `payload_too_large`, `memory_store_failed`. */
  async read(call: MemoryCall, keyText: string): Promise<ReadResult> {
    const { orgId } = call.principal
    const { row, store } = await this.#deps.configured(orgId)
    const key = parseKey(keyText)
    if (!mayRead(await this.#deps.callers.forKey(call.principal, key), key)) throw outsideScope('read')
    try {
      const found = await this.#get(store, orgId, key, call)
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

  /**
   * Returns the object. Some stores replace an object in two steps and show no object in between, so an object that the index knows is read a second
   * time.
   */
  async #get(store: ObjectStore, orgId: number, key: MemoryKey, { signal }: MemoryCall): Promise<StoredObject> {
    const get = (): Promise<StoredObject> => store.get(joinKey(orgId, key), { signal, sizeBytesMax: this.#deps.objectBytesMax })
    try {
      return await get()
    } catch (error) {
      if (!isStoreError(error, 'not-found') || !(await this.#deps.index.between(orgId, key, key)).has(key)) throw error
      return get()
    }
  }

  /**
   * Returns every readable key under the prefix, by key. The list contains the objects of the store, and the index says who wrote them. Throws
   * `memory_not_configured`, `bad_memory_key`, `forbidden`, `memory_store_failed`, and `bad_request` when there are too many keys.
   */
  async list(call: MemoryCall, prefixText: string): Promise<ListEntry[]> {
    const prefix = parsePrefix(prefixText)
    try {
      return await withinStoreTime(this.#deps.clock, call.signal, async signal => allOf(await this.walk({ ...call, signal }, prefix, {})))
    } catch (error) {
      throw storeFailure(error)
    }
  }

  /** Returns one page of `list`, with filters and common prefixes. Throws the errors of `list`, and `bad_request` for a cursor of another list. */
  async listPage(call: MemoryCall, prefixText: string, params: ListParams): Promise<ListPageView> {
    const prefix = parsePrefix(prefixText)
    const after = params.cursor === undefined ? null : positionIn(params.cursor)
    const isPlain = params.isWanted === undefined && params.delimiter === undefined
    // One object more than a page contains shows whether there is another page.
    const options = { after, ...(isPlain ? { pageSize: params.limit + 1 } : {}) }
    try {
      return await withinStoreTime(this.#deps.clock, call.signal, async signal => pageOf(await this.walk({ ...call, signal }, prefix, options), prefix, params))
    } catch (error) {
      throw storeFailure(error)
    }
  }

  /** Returns a walk over the objects that the caller may read under the prefix. Throws `memory_not_configured`, `forbidden`. */
  async walk(call: MemoryCall, prefix: string, options: Pick<KeyWalkOptions, 'after' | 'pageSize'>): Promise<KeyWalk> {
    const { clock, index, callers, configured } = this.#deps
    const found = await configured(call.principal.orgId)
    const prefixes = listPrefixes(await callers.forKey(call.principal, prefix), prefix)
    return new KeyWalk({ configured: found, index, nowMs: clock.nowMs(), prefixes, signal: call.signal, ...options })
  }
}

/** Returns all objects of the walk. Throws `bad_request` when there are too many, and ObjectStoreError. */
async function allOf(walk: KeyWalk): Promise<ListEntry[]> {
  const entries: ListEntry[] = []
  let chars = 0
  for (let found = await walk.next(); found !== null; found = await walk.next()) {
    chars += found.key.length
    if (entries.length >= listKeysMax || chars > listCharsMax)
      throw fail('bad_request', { message: 'There are too many objects under this prefix to list in one reply. Ask for pages with limit.' })
    entries.push(entryOf(found))
  }
  return entries
}

/** Returns the position in the cursor of a list. A client can invent a cursor, and a store would only say that it does not understand the position. */
function positionIn(cursor: string): string {
  const position = cursorFrom('l', cursor)
  if (Buffer.byteLength(position) > keyBytesMax + Buffer.byteLength(afterAllBelow) || /\p{Cc}/u.test(position)) throw notOurCursor()
  return position
}
