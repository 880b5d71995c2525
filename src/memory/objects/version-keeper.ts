/**
 * Copies an object before a write replaces or deletes it. Its bytes are copied inside the store to `.versions/<id of the write>`. The write has its key
 * exclusively during the copy, so the process that settles the intent keeps the copy, and the process that releases the intent removes it.
 */
import { joinKey } from '../memory-key.ts'
import { writtenMsOf } from '../provenance.ts'
import { isStoreError, type ObjectStore, ObjectStoreError } from '../stores/object-store.ts'

/** The prefix for the bytes of old versions, relative to the organisation's prefix. No caller can read or write below it. */
export const versionsPrefix = '.versions/'

/** The object before a write, in the form that the settling statement records. */
export type Kept =
  | { readonly kind: 'none' }
  /** The object that the index knows. */
  | { readonly kind: 'known' }
  /** Bytes that did not come through the gateway. They become a version without an author. */
  | { readonly kind: 'outside'; readonly etag: string; readonly sizeBytes: number; readonly writtenAt: Date }

/** The entry of the index for the key when the write took it. */
export interface Before {
  readonly etag: string
  readonly writeId: string | null
}

/** Returns the store key of the version that this write replaced. */
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

/** Keeps the object that one write replaces. */
export class VersionKeeper {
  readonly #target: KeeperTarget
  #kept: Kept = { kind: 'none' }
  /** True once the store has done the write and its settlement begins. From then on the intent must not be released. */
  isHandedOver = false

  constructor(target: KeeperTarget) {
    this.#target = target
  }

  /** Copies the current object, once. An object that the index does not know is copied too. Throws ObjectStoreError. */
  async keep(signal: AbortSignal): Promise<void> {
    const { store, orgId, storeKey, writeId, before } = this.#target
    const to = versionKey(orgId, writeId)
    try {
      const isKnown = before !== null && (await copyKnown(store, storeKey, to, before, signal))
      if (isKnown) this.#kept = { kind: 'known' }
      else if (before === null) await store.copy(storeKey, to, { signal })
      if (!isKnown) this.#kept = await keptIn(store, orgId, writeId, before?.writeId ?? null, signal)
    } catch (error) {
      // An object that is too large for a copy through this process is also too large for a read. It could never be read as a version.
      if (!isStoreError(error, 'not-found') && !isStoreError(error, 'too-large')) throw error
    }
  }

  /** Returns the kept object for the settling statement. Afterwards this write may not remove the version. */
  handOver(): Kept {
    const kept = this.#kept
    this.isHandedOver = true
    this.#kept = { kind: 'none' }
    return kept
  }

  /** Removes the copy of a write that did not happen. Returns false when the copy may still exist. Then the intent must not be released yet. */
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

/** Returns what the copy of a write contains, also for a write whose process died. Throws ObjectStoreError. */
export async function keptIn(store: ObjectStore, orgId: number, writeId: string, knownWriteId: string | null, signal?: AbortSignal): Promise<Kept> {
  const head = await store.head(versionKey(orgId, writeId), signal === undefined ? {} : { signal })
  if (head === null) return { kind: 'none' }
  if (knownWriteId !== null && head.metadata['br-write-id'] === knownWriteId) return { kind: 'known' }
  return { kind: 'outside', etag: head.etag, sizeBytes: head.sizeBytes, writtenAt: new Date(writtenMsOf(head)) }
}

/** Copies the object if it is the object that the index knows, and returns true. Otherwise it copies the current object and returns false. */
async function copyKnown(store: ObjectStore, from: string, to: string, before: Before, signal: AbortSignal): Promise<boolean> {
  try {
    // When a store ignores the condition, the copy has another etag. Some stores give every copy a new etag, so such a copy is read and compared.
    return (await store.copy(from, to, { ifMatch: before.etag, signal })).etag === before.etag
  } catch (error) {
    if (!isStoreError(error, 'precondition-failed')) throw error
    await store.copy(from, to, { signal })
    return false
  }
}
