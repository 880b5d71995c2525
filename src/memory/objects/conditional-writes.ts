/**
 * How the condition of a write reaches the store. An intent holds the key, so no other writer of the gateway can come between the check and the write.
 * The store's own conditions guard against all other writers, and against requests of ours that arrive late. So a store whose conditions do not work
 * cannot make one writer of the gateway overwrite another, with two exceptions: a request that the store performs after its intent has expired, and a
 * try of ours that it performs after the try that it answered. Decision 0220 says why.
 */

import { holds, type Precondition } from '../preconditions.ts'
import { type ObjectHead, type ObjectStore, ObjectStoreError } from '../stores/object-store.ts'
import { conflictOf } from './object-failures.ts'
import type { Before } from './version-keeper.ts'

/** What goes to the store with the write. */
export interface StoreCondition {
  readonly ifMatch?: string
  readonly ifNoneMatch?: '*'
}

export interface ConditionalWrite {
  readonly store: ObjectStore
  readonly storeKey: string
  readonly precondition: Precondition
  /** What the index has under the key. */
  readonly before: Before | null
  /** The probe found that the store honours conditions of this kind of call. */
  readonly isNative: boolean
  readonly writeId: string
  readonly signal: AbortSignal
  /** Called before something is replaced that the index does not know. */
  readonly onUnknown: () => Promise<void>
}

/** Refusals by the store of what it said itself a moment ago; after that it is asked without a condition. */
const refusalsMax = 2

/** The condition for the first try. The store is looked at only where the index cannot say that the precondition holds. Throws `memory_conflict`, ObjectStoreError. */
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

/** Puts and returns the etag. A lost reply, and a retry that met its own first attempt, count as done when the store has our write id. */
export function putUnder(
  write: ConditionalWrite,
  first: StoreCondition,
  put: (condition: StoreCondition) => Promise<{ readonly etag: string }>,
): Promise<string> {
  const isOurs: IsDone<string> = head => (head?.metadata['br-write-id'] === write.writeId ? head.etag : undefined)
  return attempt(write, first, async condition => (await put(condition)).etag, isOurs)
}

/** Deletes. A lost reply, and a retry that met its own first attempt, count as done when nothing is there any more. */
export async function deleteUnder(write: ConditionalWrite, first: StoreCondition, remove: (condition: StoreCondition) => Promise<void>): Promise<void> {
  const send = async (condition: StoreCondition): Promise<true> => {
    // A deletion has no If-None-Match: what the index does not know is deleted as it is.
    await remove(condition.ifMatch === undefined ? {} : { ifMatch: condition.ifMatch })
    return true
  }
  // "Nothing is there" is a success only for who did not ask for something, or whose own earlier try may have removed it.
  const isDone: IsDone<true> = (head, error) => (head === null && (write.precondition.kind === 'none' || error.mayHaveHappened) ? true : undefined)
  await attempt(write, first, send, isDone)
}

/** The result when what is there now shows that the write was done; undefined head: the store does not say. */
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

/** What is there now; undefined when the store does not say and nobody has to know. */
async function look({ store, storeKey, signal }: ConditionalWrite, mustKnow: boolean): Promise<ObjectHead | null | undefined> {
  if (mustKnow) return await store.head(storeKey, { signal })
  return await store.head(storeKey).catch(() => undefined)
}

function nativeCondition({ isNative }: ConditionalWrite, current: { readonly etag: string } | null): StoreCondition {
  if (!isNative) return {}
  return current === null ? { ifNoneMatch: '*' } : { ifMatch: current.etag }
}

/** Whether the precondition holds for what a look at the store found. */
export function holdsFor(precondition: Precondition, head: ObjectHead | null): boolean {
  return holds(precondition, head === null ? null : { etag: head.etag, sha256: head.metadata['br-sha256'] ?? null })
}

/** Also true for the etag that the store gave with the reply to the write, where it calls the same object by another one later. */
function stillHolds({ precondition, before }: ConditionalWrite, head: ObjectHead | null): boolean {
  if (holdsFor(precondition, head)) return true
  const isSameWrite = head !== null && before !== null && before.writeId !== null && head.metadata['br-write-id'] === before.writeId
  return isSameWrite && precondition.kind === 'etag' && precondition.etags.includes(before.etag)
}
