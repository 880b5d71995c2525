import { Cancellation, type CancelSignal } from '../../../platform/loop/cancellation.ts'
import { UpstreamError } from './upstream-error.ts'

/** The most values of all replies together. Parsing them takes some ten milliseconds, and a thousand tools have some ten thousand. */
const valuesMax = 150_000

/** What one request of an exchange passes to the SDK. */
export interface ExchangeOptions {
  readonly signal: AbortSignal
  readonly timeout: number
}

/** One exchange with a server: its bytes, its end and its first error. The first error decides; what fails after it fails because of it. */
export class Exchange {
  readonly #cut = new Cancellation()
  readonly #maxBytes: number
  #bytes = 0
  #values = 0
  #error: UpstreamError | null = null
  #reject: (error: UpstreamError) => void = () => undefined
  /** Rejects with the first error. */
  readonly failed: Promise<never>
  /** True from the moment at which the message of a call is given to the transport. */
  hasCallBegun = false
  /** True when bytes of the call may have left. */
  isSent = false

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
    this.failed = new Promise<never>((_, reject) => {
      this.#reject = reject
    })
    // The exchange may fail when nobody waits any more.
    this.failed.catch(() => undefined)
  }

  /** Aborts with the first error. */
  get signal(): AbortSignal {
    return this.#cut.signal
  }

  get error(): UpstreamError | null {
    return this.#error
  }

  /** Ends the exchange with an error. Only the first call has an effect. */
  fail(error: UpstreamError): void {
    if (this.#error !== null) return
    error.isSent = this.isSent
    this.#error = error
    this.#reject(error)
    this.#cut.abort(error)
  }

  /** Counts bytes that arrived, and the values in them. Throws `too_large`, and ends the exchange, above a bound. */
  count(bytes: number, values: number): void {
    this.#bytes += bytes
    this.#values += values
    if (this.#bytes <= this.#maxBytes && this.#values <= valuesMax) return
    const isLong = this.#bytes > this.#maxBytes
    const what = isLong ? `${this.#maxBytes} bytes` : `${valuesMax} values`
    const error = new UpstreamError('too_large', `the server sent more than ${what}`, { sizeBytes: this.#bytes, ...(isLong ? {} : { valuesMax }) })
    this.fail(error)
    throw error
  }

  /** Ends the exchange when the caller's signal aborts. The returned function stops watching. */
  follow(signal: CancelSignal): () => void {
    const onAbort = (): void => this.fail(new UpstreamError('cancelled', 'the exchange was cancelled', { reason: signal.reason }))
    if (signal.aborted) onAbort()
    else signal.addEventListener('abort', onAbort, { once: true })
    return () => signal.removeEventListener('abort', onAbort)
  }
}
