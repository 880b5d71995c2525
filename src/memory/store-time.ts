/** One time limit for work that calls a store more than once. Each call has its own limit, but many slow calls together would still take too long. */
import type { Clock } from '../platform/clock.ts'
import { ObjectStoreError } from './stores/object-store.ts'

/** Maximum time of the work of one request, or of one configuration, that reads pages or several objects from a store. */
export const storeWorkMsMax = 30_000

/** Runs the work with a signal that aborts after `limitMs`. Throws the errors of the work, and ObjectStoreError `unavailable` when the time is over. */
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
