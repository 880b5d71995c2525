import { useSyncExternalStore } from 'react'

/** A value that components can follow, outside of React. */
export interface Store<T> {
  get(): T
  set(value: T): void
  /** Calls `listener` after each change. Returns a function that ends it. */
  subscribe(listener: () => void): () => void
}

/** Makes a store. Setting the value that it already has notifies nobody. */
export function createStore<T>(initial: T): Store<T> {
  let value = initial
  const listeners = new Set<() => void>()
  return {
    get: () => value,
    set(next) {
      if (Object.is(next, value)) return
      value = next
      for (const listener of listeners) listener()
    },
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}

/** Returns the value of a store, and draws the component again when it changes. */
export function useStore<T>(store: Store<T>): T {
  return useSyncExternalStore(store.subscribe, store.get)
}
