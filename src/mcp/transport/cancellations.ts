/**
 * Cancels calls of the initialize era. A client cancels a call with a notification in a separate POST and keeps the first POST open. Without
 * sessions, only the caller and the JSON-RPC id connect the two POSTs. Ids are small numbers that every client counts from 0. A cancel therefore
 * counts only when it matches exactly one running call of that caller. Otherwise it is ignored, as the protocol allows, and `max_wait_s` bounds the
 * call. Cancelling works within one process. Decision 0071 says why.
 */
export class Cancellations {
  readonly #running = new Map<string, Set<AbortController>>()

  /** Runs a call that `cancel` with the same owner and id can abort. */
  async run<T>(owner: string, id: string | number, call: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const name = nameOf(owner, id)
    const controller = new AbortController()
    const sameName = this.#running.get(name) ?? new Set()
    this.#running.set(name, sameName.add(controller))
    try {
      return await call(controller.signal)
    } finally {
      sameName.delete(controller)
      if (sameName.size === 0) this.#running.delete(name)
    }
  }

  /** Aborts the call of that owner and id. When there is not exactly one such call, this aborts nothing and returns false. */
  cancel(owner: string, id: string | number): boolean {
    const [only, ...others] = this.#running.get(nameOf(owner, id)) ?? []
    if (!only || others.length > 0) return false
    only.abort()
    return true
  }
}

function nameOf(owner: string, id: string | number): string {
  return JSON.stringify([owner, id])
}
