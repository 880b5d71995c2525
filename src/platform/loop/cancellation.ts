/**
 * What a call needs to know of its own end. An `AbortSignal` is one; `Cancellation` is another that costs next to nothing, because every
 * call of the hot path makes one and hardly any is ever cancelled.
 */
export interface CancelSignal {
  readonly aborted: boolean
  readonly reason: unknown
  throwIfAborted(): void
  addEventListener(type: 'abort', listener: () => void, options?: { readonly once?: boolean }): void
  removeEventListener(type: 'abort', listener: () => void): void
}

/** A cancellation and its own signal in one object. Listeners run once, in order; one added after the abort never runs, as with AbortSignal. */
export class Cancellation implements CancelSignal {
  #aborted = false
  #reason: unknown
  #listeners: (() => void)[] | null = null
  #controller: AbortController | null = null

  get aborted(): boolean {
    return this.#aborted
  }

  get reason(): unknown {
    return this.#reason
  }

  /** The first reason is kept. */
  abort(reason: unknown): void {
    if (this.#aborted) return
    this.#aborted = true
    this.#reason = reason
    this.#controller?.abort(reason)
    const listeners = this.#listeners
    this.#listeners = null
    if (listeners !== null) for (const listener of listeners) listener()
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

  /** The same as an AbortSignal, made when first asked for. */
  get signal(): AbortSignal {
    if (this.#controller === null) {
      this.#controller = new AbortController()
      if (this.#aborted) this.#controller.abort(this.#reason)
    }
    return this.#controller.signal
  }
}

/** The AbortSignal of any signal, for what takes no other. */
export function abortSignalOf(signal: CancelSignal): AbortSignal {
  if (signal instanceof AbortSignal) return signal
  if (signal instanceof Cancellation) return signal.signal
  throw new TypeError('a signal is an AbortSignal or a Cancellation')
}
