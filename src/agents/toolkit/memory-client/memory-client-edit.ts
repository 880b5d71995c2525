import { BrigadeError } from '../brigade-error.ts'
import type { Abortable, MemoryObject, MemoryObjects, MemoryWritten } from './memory-client-shapes.ts'

/**
 * Computes the new content of an object. `current` is null when the object does not exist. Return null to delete the object, and undefined to leave it as it
 * is. The function may run more than once.
 */
export type MemoryChange = (current: MemoryObject | null) => string | Uint8Array | null | undefined | Promise<string | Uint8Array | null | undefined>

const attemptsDefault = 20
const pauseFirstMs = 15
const pauseMaxMs = 1000
const askedMaxMs = 30_000

/** Repeats compare and swap until it succeeds. `MemoryClient.edit` describes it. */
export async function editObject(
  memory: MemoryObjects,
  key: string,
  change: MemoryChange,
  { attempts = attemptsDefault, signal }: Abortable & { readonly attempts?: number | undefined } = {},
): Promise<MemoryWritten | null> {
  for (let attempt = 1; ; attempt++) {
    const current = await memory.read(key, { signal })
    const next = await change(current)
    if (next === undefined || (next === null && current === null)) return null
    try {
      if (next !== null) return await memory.write(key, next, current === null ? { createOnly: true, signal } : { ifMatch: current.etag, signal })
      await memory.remove(key, { ifMatch: current?.etag, signal })
      return null
    } catch (failure) {
      if (!isContention(failure) || attempt >= attempts) throw failure
      await pause(attempt, failure.retryAfterS, signal)
    }
  }
}

/** Returns whether another writer was faster (412) or is writing the key now (409). In both cases nothing was written. */
function isContention(failure: unknown): failure is BrigadeError {
  return failure instanceof BrigadeError && failure.code === 'memory_conflict' && (failure.status === 412 || failure.status === 409)
}

/**
 * Waits for the time that the gateway asks for, plus a random time up to a limit. The limit doubles with each attempt, so that writers that collided
 * do not collide again.
 */
async function pause(attempt: number, retryAfterS: number | null, signal: AbortSignal | undefined): Promise<void> {
  const limitMs = Math.min(pauseMaxMs, pauseFirstMs * 2 ** attempt)
  const waitMs = Math.min((retryAfterS ?? 0) * 1000, askedMaxMs) + Math.random() * limitMs
  await new Promise<void>((done, failed) => {
    const stop = (): void => {
      clearTimeout(timer)
      failed(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop)
      done()
    }, waitMs)
    if (signal?.aborted === true) stop()
    else signal?.addEventListener('abort', stop, { once: true })
  })
}
