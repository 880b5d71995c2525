/**
 * The part of an `AbortSignal` that a call uses. `Cancellation` is a cheaper implementation. It matters because every call on the hot path makes one, and
 * hardly any call is cancelled.
 */
export interface CancelSignal {
  readonly aborted: boolean
  readonly reason: unknown
  throwIfAborted(): void
  addEventListener(type: 'abort', listener: () => void, options?: { readonly once?: boolean }): void
  removeEventListener(type: 'abort', listener: () => void): void
}

/**
 * A cancellation and its signal in one object. Listeners run once, in order. A listener that is added after the abort never runs, as with
 * AbortSignal. A listener that throws stops neither the other listeners nor the caller of `abort`. That caller is often an event of Node.js, and
 * an exception there ends the process.
 */
export class Cancellation implements CancelSignal {
  #aborted = false
  #reason: unknown
  #listeners: (() => void)[] | null = null
  #controller: AbortController | null = null
  #listenerError: unknown = null

  get aborted(): boolean {
    return this.#aborted
  }

  get reason(): unknown {
    return this.#reason
  }

  /** The exception of the first listener that threw, or null. */
  get listenerError(): unknown {
    return this.#listenerError
  }

  /** Aborts with a reason. Only the first call has an effect. Never throws. */
  abort(reason: unknown): void {
    if (this.#aborted) return
    this.#aborted = true
    this.#reason = reason
    this.#controller?.abort(reason)
    const listeners = this.#listeners
    this.#listeners = null
    if (listeners !== null) for (const listener of listeners) this.#run(listener)
  }

  #run(listener: () => void): void {
    try {
      listener()
    } catch (error) {
      this.#listenerError ??= error
    }
  }

  throwIfAborted(): void {
    if (this.#aborted) throw this.#reason
  }

  addEventListener(_type: 'abort', listener: () => void): void {
    if (this.#aborted) return
    if (this.#listeners === null) this.#listeners = [listener]
    else this.#listeners.push(listener)
  }

  removeEventListener(_type: 'abort', listener: () => void): void {
    const at = this.#listeners?.indexOf(listener) ?? -1
    if (at >= 0) this.#listeners?.splice(at, 1)
  }

  /** The same cancellation as an AbortSignal. It is made when it is first read. */
  get signal(): AbortSignal {
    if (this.#controller === null) {
      this.#controller = new AbortController()
      if (this.#aborted) this.#controller.abort(this.#reason)
    }
    return this.#controller.signal
  }
}

/** Returns the AbortSignal of a signal, for APIs that accept no other. */
export function abortSignalOf(signal: CancelSignal): AbortSignal {
  if (signal instanceof AbortSignal) return signal
  if (signal instanceof Cancellation) return signal.signal
  throw new TypeError('a signal is an AbortSignal or a Cancellation')
}
