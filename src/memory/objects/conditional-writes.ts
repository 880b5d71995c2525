/**
 * Passes the condition of a write to the store. While an intent reserves the key, no other writer of the gateway can write between the check and the write.
 * The store's own conditions protect against all other writers, and against requests of the gateway that arrive late. Without working conditions in the
 * store, one writer of the gateway can overwrite another in two cases only. In the first, the store performs a request after the intent has expired. In the
 * second, the store performs an earlier try after it has answered a later one. Decision 0220 says why.
 */

import { holds, type Precondition } from '../preconditions.ts'
import { type ObjectHead, type ObjectStore, ObjectStoreError } from '../stores/object-store.ts'
import { conflictOf } from './object-failures.ts'
import type { Before } from './version-keeper.ts'

/** The condition that the store receives with the write. */
export interface StoreCondition {
  readonly ifMatch?: string
  readonly ifNoneMatch?: '*'
}

export interface ConditionalWrite {
  readonly store: ObjectStore
  readonly storeKey: string
  readonly precondition: Precondition
  /** The entry of the index for the key. */
  readonly before: Before | null
  /** Whether the probe found that the store honours conditions of this kind of call. */
  readonly isNative: boolean
  readonly writeId: string
  readonly signal: AbortSignal
  /** Is called before the write replaces an object that the index does not know. */
  readonly onUnknown: () => Promise<void>
}

/** A store can refuse a condition on the state that it has just reported. After this number of refusals, the write is sent without a condition. */
const refusalsMax = 2

/**
 * Returns the condition for the first try. Reads the store only when the index cannot show that the precondition holds. Throws `memory_conflict`,
 * ObjectStoreError.
 */
export async function conditionFor(write: ConditionalWrite): Promise<StoreCondition> {
  const { precondition, before, isNative } = write
  const isLikely =
    precondition.kind === 'none' ||
    (precondition.kind === 'absent' && before === null) ||
    (precondition.kind === 'present' && before !== null) ||
    (precondition.kind === 'etag' && before !== null && precondition.etags.includes(before.etag))
  if (isLikely && (isNative || precondition.kind === 'none')) return nativeCondition(write, before)
  const head = await write.store.head(write.storeKey, { signal: write.signal })
  if (!stillHolds(write, head)) throw conflictOf(head)
  return nativeCondition(write, head)
}

/**
 * Puts the object and returns its etag. The reply may be lost, or a retry may be refused because the first attempt succeeded. The write then counts as done
 * when the object in the store has its write id.
 */
export function putUnder(
  write: ConditionalWrite,
  first: StoreCondition,
  put: (condition: StoreCondition) => Promise<{ readonly etag: string }>,
): Promise<string> {
  const isOurs: IsDone<string> = head => (head?.metadata['br-write-id'] === write.writeId ? head.etag : undefined)
  return attempt(write, first, async condition => (await put(condition)).etag, isOurs)
}

/**
 * Deletes the object. The reply may be lost, or a retry may be refused because the first attempt succeeded. The deletion then counts as done when the
 * object does not exist any more.
 */
export async function deleteUnder(write: ConditionalWrite, first: StoreCondition, remove: (condition: StoreCondition) => Promise<void>): Promise<void> {
  const send = async (condition: StoreCondition): Promise<true> => {
    // A deletion has no If-None-Match, so an object that the index does not know is deleted without a condition.
    await remove(condition.ifMatch === undefined ? {} : { ifMatch: condition.ifMatch })
    return true
  }
  // A missing object is a success only in two cases: the caller required no object, or its own earlier try may have removed it.
  const isDone: IsDone<true> = (head, error) => (head === null && (write.precondition.kind === 'none' || error.mayHaveHappened) ? true : undefined)
  await attempt(write, first, send, isDone)
}

/** Returns the result when the current object shows that the write was done. `head` is undefined when the store did not say which object is current. */
type IsDone<T> = (head: ObjectHead | null | undefined, error: ObjectStoreError) => T | undefined

async function attempt<T>(write: ConditionalWrite, first: StoreCondition, send: (condition: StoreCondition) => Promise<T>, isDone: IsDone<T>): Promise<T> {
  let condition = first
  for (let refusals = 0; ; ) {
    try {
      return await send(condition)
    } catch (error) {
      if (!(error instanceof ObjectStoreError)) throw error
      const isRefused = error.kind === 'precondition-failed'
      const isUnknown = error.kind === 'unsupported' && (condition.ifMatch !== undefined || condition.ifNoneMatch !== undefined)
      if (!isRefused && !isUnknown && !error.mayHaveHappened) throw error
      const head = await look(write, isRefused || isUnknown)
      const done = isDone(head, error)
      if (done !== undefined) return done
      if (head === undefined || !(isRefused || isUnknown)) throw error
      if (!stillHolds(write, head)) throw conflictOf(head)
      if (head !== null) await write.onUnknown()
      refusals++
      condition = isUnknown || refusals >= refusalsMax ? {} : nativeCondition(write, head)
      if (refusals > refusalsMax) throw error
    }
  }
}

/** Returns the current object, or null when there is none. When the store fails, throws if `mustKnow` is true and otherwise returns undefined. */
async function look({ store, storeKey, signal }: ConditionalWrite, mustKnow: boolean): Promise<ObjectHead | null | undefined> {
  if (mustKnow) return await store.head(storeKey, { signal })
  return await store.head(storeKey).catch(() => undefined)
}

function nativeCondition({ isNative }: ConditionalWrite, current: { readonly etag: string } | null): StoreCondition {
  if (!isNative) return {}
  return current === null ? { ifNoneMatch: '*' } : { ifMatch: current.etag }
}

/** Returns whether the precondition holds for the object that the store reports. */
export function holdsFor(precondition: Precondition, head: ObjectHead | null): boolean {
  return holds(precondition, head === null ? null : { etag: head.etag, sha256: head.metadata['br-sha256'] ?? null })
}

/**
 * Returns whether the precondition still holds. The index contains the etag from the store's reply to the last write, and a precondition on this etag also
 * holds. Some stores later give the same object another etag.
 */
function stillHolds({ precondition, before }: ConditionalWrite, head: ObjectHead | null): boolean {
  if (holdsFor(precondition, head)) return true
  const isSameWrite = head !== null && before !== null && before.writeId !== null && head.metadata['br-write-id'] === before.writeId
  return isSameWrite && precondition.kind === 'etag' && precondition.etags.includes(before.etag)
}
