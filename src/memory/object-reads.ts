/** Reading and listing memory objects. */
import { fail } from '../platform/errors.ts'
import { joinKey, parseKey, parsePrefix, relativeKey } from './memory-key.ts'
import { noObject, outsideScope, storeFailure } from './object-failures.ts'
import { isStoreError, type ObjectStore } from './object-store.ts'
import type { ListEntry, MemoryCall, MemoryObjectsDeps, ReadResult } from './objects.ts'
import { authorInRow, metaHeaders, writtenMsOf } from './provenance.ts'
import type { StoreRow } from './queries.ts'
import { isExpired, listPrefixes, mayRead } from './scopes.ts'

/** Pages of one list: a million keys. */
const listPagesMax = 1000

/** The reading half of the object calls. */
export class MemoryReads {
  readonly #deps: MemoryObjectsDeps

  constructor(deps: MemoryObjectsDeps) {
    this.#deps = deps
  }

  /** Throws `memory_not_configured`, `bad_memory_key`, `forbidden`, `not_found`, `payload_too_large`, `memory_store_failed`. */
  async read(call: MemoryCall, keyText: string): Promise<ReadResult> {
    const { orgId } = call.principal
    const { row, store } = await this.#deps.configured(orgId)
    const key = parseKey(keyText)
    if (!mayRead(await this.#deps.callers.forKey(call.principal, key), key)) throw outsideScope('read')
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

  /** Every readable key under the prefix, by key. What the store holds is what is listed; the index says who wrote it. */
  async list(call: MemoryCall, prefixText: string): Promise<ListEntry[]> {
    const { orgId } = call.principal
    const { row, store } = await this.#deps.configured(orgId)
    const asked = parsePrefix(prefixText)
    const prefixes = listPrefixes(await this.#deps.callers.forKey(call.principal, asked), asked)
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
}
