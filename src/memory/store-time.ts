/** One time for work that asks a store more than once: each call has its own limit, but a slow store could be asked many times. */
import type { Clock } from '../platform/clock.ts'
import { ObjectStoreError } from './stores/object-store.ts'

/** Longest work of one request, or of one configuration, that asks a store for pages or for several objects. */
export const storeWorkMsMax = 30_000

/** Runs the work with a signal that ends it after `limitMs`. Throws what the work throws; when the time is over, ObjectStoreError `unavailable`. */
export async function withinStoreTime<T>(
  clock: Clock,
  signal: AbortSignal | undefined,
  work: (signal: AbortSignal) => Promise<T>,
  limitMs = storeWorkMsMax,
): Promise<T> {
  const limit = new AbortController()
  const late = new ObjectStoreError('unavailable', `the store needs more than the ${limitMs / 1000} s that this work may take`)
  const cancel = clock.after(limitMs, () => limit.abort(late))
  try {
    return await work(signal === undefined ? limit.signal : AbortSignal.any([signal, limit.signal]))
  } finally {
    cancel()
  }
}
