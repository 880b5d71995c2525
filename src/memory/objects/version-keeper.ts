/**
 * Copies an object before a write replaces or deletes it: its bytes go inside the store to `.versions/<id of the write>`. The write holds its key during
 * the copy, so the process that settles or releases the intent knows what to do with the copy.
 */
import { joinKey } from '../memory-key.ts'
import { writtenMsOf } from '../provenance.ts'
import { isStoreError, type ObjectStore, ObjectStoreError } from '../stores/object-store.ts'

/** Where the bytes of old versions are, relative to the organisation's prefix. Outside every scope. */
export const versionsPrefix = '.versions/'

/** What was there before a write, as the settling statement books it. */
export type Kept =
  | { readonly kind: 'none' }
  /** The object that the index knows. */
  | { readonly kind: 'known' }
  /** Bytes that did not come through the gateway: a version without an author. */
  | { readonly kind: 'outside'; readonly etag: string; readonly sizeBytes: number; readonly writtenAt: Date }

/** What the index had under the key when the write took it. */
export interface Before {
  readonly etag: string
  readonly writeId: string | null
}

/** The store key of the version that this write replaced. */
export function versionKey(orgId: number, objectId: string): string {
  return joinKey(orgId, versionsPrefix + objectId)
}

export interface KeeperTarget {
  readonly store: ObjectStore
  readonly orgId: number
  readonly storeKey: string
  readonly writeId: string
  readonly before: Before | null
}

/** Keeps what one write replaces. */
export class VersionKeeper {
  readonly #target: KeeperTarget
  #kept: Kept = { kind: 'none' }
  /** True once the write is in the store and was about to be settled: it must not be released then. */
  isHandedOver = false

  constructor(target: KeeperTarget) {
    this.#target = target
  }

  /** Copies what is there, once. What the index does not know is kept as it is found. Throws ObjectStoreError. */
  async keep(signal: AbortSignal): Promise<void> {
    const { store, orgId, storeKey, writeId, before } = this.#target
    const to = versionKey(orgId, writeId)
    try {
      const isKnown = before !== null && (await copyKnown(store, storeKey, to, before, signal))
      if (isKnown) this.#kept = { kind: 'known' }
      else if (before === null) await store.copy(storeKey, to, { signal })
      if (!isKnown) this.#kept = await keptIn(store, orgId, writeId, before?.writeId ?? null, signal)
    } catch (error) {
      // What is too large for a copy through this process is too large to be read through it as well, as a version too.
      if (!isStoreError(error, 'not-found') && !isStoreError(error, 'too-large')) throw error
    }
  }

  /** For the settling statement; from here on the version is not this write's to remove. */
  handOver(): Kept {
    const kept = this.#kept
    this.isHandedOver = true
    this.#kept = { kind: 'none' }
    return kept
  }

  /** Removes the copy of a write that did not happen. False when it may still be there: then the intent must not be released yet. */
  async discard(): Promise<boolean> {
    if (this.#kept.kind === 'none') return true
    const { store, orgId, writeId } = this.#target
    try {
      await store.delete(versionKey(orgId, writeId))
      return true
    } catch (error) {
      if (error instanceof ObjectStoreError) return false
      throw error
    }
  }
}

/** What the copy that a write made holds; for a write whose process died as well. Throws ObjectStoreError. */
export async function keptIn(store: ObjectStore, orgId: number, writeId: string, knownWriteId: string | null, signal?: AbortSignal): Promise<Kept> {
  const head = await store.head(versionKey(orgId, writeId), signal === undefined ? {} : { signal })
  if (head === null) return { kind: 'none' }
  if (knownWriteId !== null && head.metadata['br-write-id'] === knownWriteId) return { kind: 'known' }
  return { kind: 'outside', etag: head.etag, sizeBytes: head.sizeBytes, writtenAt: new Date(writtenMsOf(head)) }
}

/** Copies the object if it is the object that the index knows, and returns true. Otherwise it copies the current object and returns false. */
async function copyKnown(store: ObjectStore, from: string, to: string, before: Before, signal: AbortSignal): Promise<boolean> {
  try {
    // When a store ignores the condition, the etag of the copy shows it. Some stores give copies their own etags; those copies are read to compare them.
    return (await store.copy(from, to, { ifMatch: before.etag, signal })).etag === before.etag
  } catch (error) {
    if (!isStoreError(error, 'precondition-failed')) throw error
    await store.copy(from, to, { signal })
    return false
  }
}
