/** Walks over the objects that a caller may read, in bytewise order of their keys, one page of the store at a time. */

import type { AuthorNames } from '../../access/author-names.ts'
import type { ConfiguredStore } from '../../access/memory-call.ts'
import { isExpired } from '../../access/path-rules.ts'
import { isServedFolder, isServedKey, joinKey, keyBytesMax, relativeKey } from '../../memory-key.ts'
import type { AuthorNameView } from '../../provenance.ts'
import { afterAllBelow, compareKeys, listPageMax, ObjectStoreError } from '../../stores/object-store.ts'
import type { ObjectRow } from '../queries.ts'
import type { MemoryIndex } from './memory-index.ts'

/** One object of the store with its entry in the index. */
export interface WalkedObject {
  readonly key: string
  readonly etag: string
  readonly sizeBytes: number
  readonly writtenMs: number
  /** Undefined when the gateway does not know these bytes, because they were replaced in the bucket. */
  readonly row: ObjectRow | undefined
  /** Undefined when the walk does not look up names. */
  readonly names?: AuthorNameView
}

/** A walk over objects in bytewise order of their keys. */
export interface ObjectWalk {
  /** The position at which the walk stopped because it has looked at enough objects. Null when it did not. */
  readonly stoppedAt: string | null
  /** Returns the next object, or null at the end and where the walk stops. */
  next(): Promise<WalkedObject | null>
  /** Moves the walk to `after`, which must not be before its position. */
  seek(after: string): void
}

export interface KeyWalkOptions {
  readonly configured: ConfiguredStore
  readonly index: MemoryIndex
  readonly nowMs: number
  /** No prefix is the beginning of another. */
  readonly prefixes: readonly string[]
  /** The walk visits only keys after this one. */
  readonly after?: string | null
  /** Number of objects of the first page of the store, 1 to 1000. Each further page has twice as many as the one before. */
  readonly pageSize?: number
  /** The walk stops when the store has listed this many objects. When it is left out, the walk goes on to the end. */
  readonly lookMax?: number
  /** True: the walk returns a folder below its prefix as one object, whose key ends with a slash, where the store knows folders. */
  readonly byFolder?: boolean
  /** Receives the authors of each page. When it is left out, the objects of the walk have no names. */
  readonly names?: AuthorNames
  readonly signal: AbortSignal
}

/**
 * Maximum number of pages of one walk, which is a million objects. Without this bound, a bucket full of objects that the gateway does not serve would make
 * a call endless.
 */
const pagesMax = 1_000

/** Returns whether a walk can begin after this text. A store refuses any other text without saying why. */
export function isPosition(text: string): boolean {
  return Buffer.byteLength(text) <= keyBytesMax + Buffer.byteLength(afterAllBelow) && !/\p{Cc}/u.test(text)
}

/** Iterates over the objects of the store, without expired journal entries. A position is a key, so writes during the walk do not shift it. */
export class KeyWalk implements ObjectWalk {
  readonly #options: KeyWalkOptions
  readonly #prefixes: readonly string[]
  #prefixAt = 0
  #after: string | null
  #listedTo: string | null = null
  #page: WalkedObject[] = []
  #isLastPage = false
  #listed = 0
  /** The position at which the walk stopped because of `lookMax`. Null when it did not. */
  stoppedAt: string | null = null
  #pages = 0
  #pageSize: number

  constructor(options: KeyWalkOptions) {
    this.#options = options
    this.#prefixes = [...options.prefixes].sort(compareKeys)
    this.#after = options.after ?? null
    this.#pageSize = options.pageSize ?? listPageMax
  }

  /** Returns the next object, or null at the end and where the walk stops. Throws ObjectStoreError. */
  async next(): Promise<WalkedObject | null> {
    for (;;) {
      const found = this.#page.shift()
      if (found !== undefined) {
        if (this.#after !== null && compareKeys(found.key, this.#after) <= 0) continue
        this.#after = found.key
        return found
      }
      if (this.#isLastPage) {
        this.#listedTo = `${this.#prefixes[this.#prefixAt]}${afterAllBelow}`
        this.#prefixAt++
        this.#isLastPage = false
      }
      const prefix = this.#prefixes[this.#prefixAt]
      if (prefix === undefined) return null
      if (this.#after !== null && compareKeys(prefix + afterAllBelow, this.#after) <= 0) this.#prefixAt++
      else if (this.#isSpent()) return null
      else await this.#fetch(prefix)
    }
  }

  /** Returns whether the walk may visit this key. */
  covers(key: string): boolean {
    return this.#prefixes.some(prefix => key.startsWith(prefix))
  }

  /** Moves the walk to `after`, which must not be before its position. */
  seek(after: string): void {
    this.#after = after
  }

  /** Returns whether the walk stops here. The walk goes on while it has no position from which a later walk could begin. */
  #isSpent(): boolean {
    const position = later(this.#after, this.#listedTo)
    if (this.#listed < (this.#options.lookMax ?? Number.POSITIVE_INFINITY) || position === null || !isPosition(position)) return false
    this.stoppedAt = position
    return true
  }

  async #fetch(prefix: string): Promise<void> {
    const { configured, signal, byFolder = false, lookMax = Number.POSITIVE_INFINITY } = this.#options
    const { row, store } = configured
    if (++this.#pages > pagesMax) throw new ObjectStoreError('unavailable', 'there are too many objects to walk through')
    const position = later(this.#after, this.#listedTo)
    const after = position !== null && compareKeys(position, prefix) >= 0 ? position : null
    const page = await store.list({
      prefix: joinKey(row.orgId, prefix),
      limit: Math.min(this.#pageSize, listPageMax, lookMax > this.#listed ? lookMax - this.#listed : listPageMax),
      signal,
      ...(byFolder ? { byFolder } : {}),
      ...(after === null ? {} : { startAfter: joinKey(row.orgId, after) }),
    })
    this.#pageSize = Math.min(2 * this.#pageSize, listPageMax)
    this.#listed += page.objects.length + (page.folders?.length ?? 0)
    this.#isLastPage = page.next === null
    const served = page.objects.flatMap(object => {
      const key = relativeKey(row.orgId, object.key)
      return key !== null && isServedKey(key) ? [{ ...object, key }] : []
    })
    // A page without any served object also moves the walk forward.
    if (page.next !== null) this.#listedTo = relativeKey(row.orgId, page.next)
    this.#page = await this.#known(served)
    const folders = (page.folders ?? []).flatMap(folder => {
      const key = relativeKey(row.orgId, folder)
      return key !== null && isServedFolder(key) ? [key] : []
    })
    if (folders.length > 0) this.#page = [...this.#page, ...folders.map(folderOf)].sort((a, b) => compareKeys(a.key, b.key))
  }

  async #known(served: readonly { key: string; etag: string; sizeBytes: number; modifiedMs: number }[]): Promise<WalkedObject[]> {
    const { configured, index, nowMs, names } = this.#options
    if (served.length === 0) return []
    const rows = await index.of(
      configured.row.orgId,
      served.map(({ key }) => key),
    )
    await names?.learn([...rows.values()])
    return served.flatMap(({ key, etag, sizeBytes, modifiedMs }) => {
      const indexed = rows.get(key)
      // A row with another etag describes an object that the bucket's owner has replaced since.
      const row = indexed?.etag === etag ? indexed : undefined
      const writtenMs = row?.writtenAt.getTime() ?? modifiedMs
      return isExpired(key, writtenMs, configured.row.journalTtlDays, nowMs)
        ? []
        : [{ key, etag, sizeBytes, writtenMs, row, ...(names === undefined ? {} : { names: names.of(row) }) }]
    })
  }
}

function folderOf(key: string): WalkedObject {
  return { key, etag: '', sizeBytes: 0, writtenMs: 0, row: undefined }
}

function later(a: string | null, b: string | null): string | null {
  if (a === null || b === null) return a ?? b
  return compareKeys(a, b) >= 0 ? a : b
}
