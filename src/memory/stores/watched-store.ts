import type { Clock } from '../../platform/clock.ts'
import { type ObjectStore, ObjectStoreError } from './object-store.ts'

/** Receives every call of a store. `outcome` is ok, a kind of ObjectStoreError, or other. It must not throw. */
export interface StoreWatch {
  ended(operation: string, outcome: string, tookMs: number): void
}

/** Returns a store that reports each of its calls. */
export function watchedStore(store: ObjectStore, watch: StoreWatch, clock: Clock): ObjectStore {
  const told = async <T>(operation: string, work: Promise<T>): Promise<T> => {
    const startedMs = clock.monotonicMs()
    let outcome = 'other'
    try {
      const value = await work
      outcome = 'ok'
      return value
    } catch (error) {
      if (error instanceof ObjectStoreError) outcome = error.kind
      throw error
    } finally {
      watch.ended(operation, outcome, clock.monotonicMs() - startedMs)
    }
  }
  const { versioning } = store
  return {
    get: (key, options) => told('get', store.get(key, options)),
    head: (key, options) => told('head', store.head(key, options)),
    put: (key, bytes, options) => told('put', store.put(key, bytes, options)),
    copy: (from, to, options) => told('copy', store.copy(from, to, options)),
    delete: (key, options) => told('delete', store.delete(key, options)),
    list: options => told('list', store.list(options)),
    ...(versioning === undefined ? {} : { versioning: options => versioning.call(store, options) }),
    close: () => store.close(),
  }
}
