/** Reads and lists memory objects. */
import { fail, type GatewayError } from '../../platform/errors.ts'
import type { RoomOfReply } from '../../platform/outbound/held-replies.ts'
import { Shares } from '../../platform/shares.ts'
import { AuthorNames } from '../access/author-names.ts'
import type { ConfiguredStore, MemoryCall, NamedEntry, ReadResult } from '../access/memory-call.ts'
import { isExpired, listPrefixes, mayRead } from '../access/path-rules.ts'
import { joinKey, type MemoryKey, parseKey, parsePrefix } from '../memory-key.ts'
import { metaHeaders, writtenMsOf } from '../provenance.ts'
import { withinStoreTime } from '../store-time.ts'
import { isStoreError, type ObjectStore, type StoredObject } from '../stores/object-store.ts'
import { AuthorWalk } from './index/author-walk.ts'
import { isPosition, KeyWalk, type KeyWalkOptions, type ObjectWalk } from './index/key-walk.ts'
import { entryBytes, listJson } from './index/list-bytes.ts'
import { entryOf, type ListPageView, type ListParams, pageOf } from './index/list-page.ts'
import { cursorFrom, notOurCursor } from './index/page-cursor.ts'
import type { MemoryObjectsDeps } from './object-deps.ts'
import { noObject, outsideScope, storeFailure } from './object-failures.ts'

/** Maximum number of keys of a list without pages, because the whole list is in memory. The next constant is the maximum number of bytes of its JSON. */
const listKeysMax = 100_000
const listMaxBytes = 32 * 1024 * 1024
/** Room for a list is taken in parts of about this size. */
const roomStepBytes = 64 * 1024
/** An entry is in memory as an object, and then as JSON. */
const copiesOfList = 2
/** Maximum number of objects of the store that one page with a filter or a delimiter examines. Its cursor then continues after the last of them. */
const lookMax = 2_000
/** Maximum number of concurrent lists in one process. A further list is refused. */
const listsAtOnce = 64
/** Percentage of the places that others leave free that one founder may use. */
const founderPercent = 50
/** Maximum number of concurrent lists of one founder. */
const listsOfFounderMax = 16

/** The reading part of the object calls. */
export class MemoryReads {
  readonly #deps: MemoryObjectsDeps
  /** The running lists of each founder. */
  readonly #places = new Shares<string>(listsAtOnce, founderPercent)

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
   * Returns the object. Some stores replace an object in two steps and show no object in between. An object that the index knows is therefore read a second
   * time before it counts as missing.
   */
  async #get(store: ObjectStore, orgId: number, key: MemoryKey, { signal }: MemoryCall): Promise<StoredObject> {
    const get = (): Promise<StoredObject> => store.get(joinKey(orgId, key), { signal, sizeBytesMax: this.#deps.objectBytesMax })
    try {
      return await get()
    } catch (error) {
      if (!isStoreError(error, 'not-found') || !(await this.#deps.index.of(orgId, [key])).has(key)) throw error
      return get()
    }
  }

  /**
   * Returns the JSON of every readable key under the prefix. The list takes room for kept replies of its organisation's founder. Throws the errors of
   * `list`, and `rate_limit_exceeded` when there is no room.
   */
  listWhole(call: MemoryCall, prefixText: string): Promise<Buffer> {
    const { heldReplies } = this.#deps
    const make = async (room?: RoomOfReply): Promise<Buffer> => listJson(await this.list(call, prefixText, room))
    return heldReplies === undefined ? make() : heldReplies.run(call.principal.orgId, make)
  }

  /**
   * Returns every readable key under the prefix, by key. The list contains the objects of the store, and the index says who wrote them. Throws
   * `memory_not_configured`, `bad_memory_key`, `forbidden`, `memory_store_failed`, `bad_request` when there are too many keys, and `rate_limit_exceeded`
   * when too many lists run.
   */
  async list(call: MemoryCall, prefixText: string, room?: RoomOfReply): Promise<NamedEntry[]> {
    const prefix = parsePrefix(prefixText)
    const names = this.#namesFor(call)
    return this.#inPlace(call, async signal => allOf(await this.walk({ ...call, signal }, prefix, { names }), room))
  }

  /** Returns one page of `list`, with filters and common prefixes. Throws the errors of `list`, and `bad_request` for a cursor of another list. */
  async listPage(call: MemoryCall, prefixText: string, params: ListParams): Promise<ListPageView> {
    const prefix = parsePrefix(prefixText)
    const after = params.cursor === undefined ? null : positionIn(params.cursor)
    return this.#inPlace(call, async signal => pageOf(await this.#pageWalk({ ...call, signal }, prefix, params, after), prefix, params))
  }

  /**
   * Runs one list, which counts as a concurrent list of the organisation's founder. Throws `rate_limit_exceeded` when too many lists run, and the errors of
   * the work.
   */
  async #inPlace<T>(call: MemoryCall, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const founder = this.#deps.founderOf(call.principal.orgId)
    if (this.#places.of(founder) >= listsOfFounderMax)
      throw tooMany(`The organisations of this one's founder run ${listsOfFounderMax} lists of memory concurrently.`)
    if (this.#places.take(founder) !== null) throw tooMany('Too many lists of memory run concurrently.')
    try {
      return await withinStoreTime(this.#deps.clock, call.signal, work)
    } catch (error) {
      throw storeFailure(error)
    } finally {
      this.#places.give(founder)
    }
  }

  /** Returns a walk over the objects that the caller may read under the prefix. Throws `memory_not_configured`, `forbidden`. */
  async walk(call: MemoryCall, prefix: string, options: Pick<KeyWalkOptions, 'after' | 'pageSize' | 'lookMax' | 'names' | 'byFolder'>): Promise<KeyWalk> {
    const { clock, index } = this.#deps
    return new KeyWalk({ ...(await this.#readable(call, prefix)), index, nowMs: clock.nowMs(), signal: call.signal, ...options })
  }

  /** Returns the walk of one page. The objects of one author come from the index, and all others from the store. */
  async #pageWalk(call: MemoryCall, prefix: string, params: ListParams, after: string | null): Promise<ObjectWalk> {
    const { author, delimiter, isWanted, limit } = params
    const names = this.#namesFor(call)
    // One object more than a page contains shows whether there is another page.
    const pageSize = limit + 1
    if (author === undefined) {
      if (isWanted === undefined && delimiter === undefined) return this.walk(call, prefix, { after, names, pageSize })
      if (isWanted === undefined && delimiter === '/') return this.walk(call, prefix, { after, names, pageSize, lookMax, byFolder: true })
      return this.walk(call, prefix, { after, names, lookMax })
    }
    const { clock, db } = this.#deps
    return new AuthorWalk({ ...(await this.#readable(call, prefix)), db, author, after, pageSize, lookMax, names, nowMs: clock.nowMs(), signal: call.signal })
  }

  async #readable({ principal }: MemoryCall, prefix: string): Promise<{ configured: ConfiguredStore; prefixes: string[] }> {
    const { callers, configured } = this.#deps
    const found = await configured(principal.orgId)
    return { configured: found, prefixes: listPrefixes(await callers.forKey(principal, prefix), prefix) }
  }

  #namesFor({ principal }: MemoryCall): AuthorNames {
    return new AuthorNames(this.#deps.db, principal.orgId)
  }
}

const tooMany = (why: string): GatewayError => fail('rate_limit_exceeded', { message: `${why} Try again in a second.`, retryAfterSeconds: 1 })

/** Returns all objects of the walk. Throws `bad_request` when there are too many, `rate_limit_exceeded` when there is no room, and ObjectStoreError. */
async function allOf(walk: KeyWalk, room: RoomOfReply | undefined): Promise<NamedEntry[]> {
  const entries: NamedEntry[] = []
  let bytes = 0
  let takenBytes = 0
  for (let found = await walk.next(); found !== null; found = await walk.next()) {
    const entry = entryOf(found)
    bytes += entryBytes(entry)
    if (bytes - takenBytes >= roomStepBytes) {
      if (room?.take(copiesOfList * (bytes - takenBytes)) === false)
        throw tooMany("Whole lists of memory of this founder's organisations take too much memory now. Ask for pages with limit.")
      takenBytes = bytes
    }
    if (entries.length >= listKeysMax || bytes > listMaxBytes)
      throw fail('bad_request', { message: 'There are too many objects under this prefix to list in one reply. Ask for pages with limit.' })
    entries.push(entry)
  }
  return entries
}

/** Returns the position in the cursor of a list. The position is checked, because a client can invent a cursor. */
function positionIn(cursor: string): string {
  const position = cursorFrom('l', cursor)
  if (!isPosition(position)) throw notOurCursor()
  return position
}
