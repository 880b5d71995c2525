/** Reads the next few objects concurrently while a search works on the current one, so that the search waits less for the store. */

import type { ConfiguredStore } from '../access/memory-call.ts'
import { isExpired } from '../access/path-rules.ts'
import { joinKey } from '../memory-key.ts'
import type { KeyWalk } from '../objects/index/key-walk.ts'
import { writtenMsOf } from '../provenance.ts'
import { isStoreError, type StoredObject } from '../stores/object-store.ts'

export interface ReadAheadOptions {
  readonly walk: KeyWalk
  readonly configured: ConfiguredStore
  readonly nowMs: number
  /** Larger objects are skipped. */
  readonly objectBytesMax: number
  readonly signal: AbortSignal
}

export interface ReadObject {
  readonly key: string
  readonly sizeBytes: number
  /** Null when the object is gone, expired or too large. Throws ObjectStoreError. */
  readonly object: Promise<StoredObject | null>
}

/** Maximum number of objects that are read ahead. The next constant bounds the bytes of all of them together. */
const aheadMax = 8
const aheadBytesMax = 4 * 1024 * 1024
/**
 * Objects above this size are skipped when they are also larger than the list says. Otherwise a store whose list says too little would fill the
 * memory of the process.
 */
const unlistedBytesMax = aheadBytesMax / aheadMax

export class ReadAhead {
  readonly #options: ReadAheadOptions
  readonly #queue: ReadObject[] = []
  #bytes = 0
  #isEnd = false

  constructor(options: ReadAheadOptions) {
    this.#options = options
  }

  /** Puts one object before the objects of the walk. */
  startWith(key: string): void {
    this.#start(key, 0, this.#options.objectBytesMax)
  }

  /** Returns the next object, or null at the end. */
  async next(): Promise<ReadObject | null> {
    while (!this.#isEnd && this.#queue.length < aheadMax && (this.#queue.length === 0 || this.#bytes < aheadBytesMax)) {
      const found = await this.#options.walk.next()
      if (found === null) this.#isEnd = true
      else this.#start(found.key, found.sizeBytes, Math.max(found.sizeBytes, unlistedBytesMax))
    }
    const next = this.#queue.shift() ?? null
    if (next !== null) this.#bytes -= next.sizeBytes
    return next
  }

  #start(key: string, sizeBytes: number, bytesMax: number): void {
    const object = this.#read(key, sizeBytes, bytesMax)
    // When the search stops early, no caller waits for this object, and its failure is ignored.
    object.catch(() => {})
    this.#queue.push({ key, sizeBytes, object })
    this.#bytes += sizeBytes
  }

  async #read(key: string, sizeBytes: number, bytesMax: number): Promise<StoredObject | null> {
    const { configured, nowMs, objectBytesMax, signal } = this.#options
    const { row, store } = configured
    if (sizeBytes > objectBytesMax) return null
    try {
      const found = await store.get(joinKey(row.orgId, key), { signal, sizeBytesMax: Math.min(objectBytesMax, bytesMax) })
      return isExpired(key, writtenMsOf(found), row.journalTtlDays, nowMs) ? null : found
    } catch (error) {
      if (isStoreError(error, 'not-found') || isStoreError(error, 'too-large')) return null
      throw error
    }
  }
}
