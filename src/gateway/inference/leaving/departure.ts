import type { Clock } from '../../../platform/clock.ts'
import { Cancellation, type CancelSignal } from '../../../platform/loop/cancellation.ts'
import { CallCutError, type CallOwners, type CutReason, type Inflight } from '../../../platform/loop/inflight.ts'
import { type Departures, readOnLongestMs } from './departures.ts'

export interface DepartureDeps {
  readonly clock: Pick<Clock, 'after' | 'monotonicMs'>
  readonly inflight: Inflight
  readonly departures: Departures
  readonly orgId: number
  /** The owners of the call: a cut of one of them ends the call also after the caller has left. */
  readonly owners: CallOwners
  /** The initial `followMs` of the departure. */
  readonly followMs: () => number
  /** Throws or rejects when the caller was revoked. */
  recheck(): void | Promise<void>
  /** Is called when the caller has left and the provider is followed. */
  onFollowed(): void
  /** Is called when a listener threw after the departure itself ended the call. No client is there to receive the exception. */
  onListenerError(error: unknown): void
}

/** The cuts that owners can make of calls of their own or of their organisation. Such a cut must not make a call cheaper. */
const cutsByOwners: ReadonlySet<CutReason> = new Set(['agent_revoked', 'agent_paused', 'key_revoked', 'token_revoked', 'run_ended'])

/** The shortest time between two extensions of the reading. */
const timerMinMs = 1000

/** The abort reason of a caller inside the gateway that gives a call up and waits for its end. Its provider is not followed. */
export class GivenUpError extends Error {
  override readonly name = 'GivenUpError'
}

/**
 * The end of a call as its provider sees it.
 *
 * A cut by the gateway reaches the provider immediately. A caller who leaves does not end the provider's work when there is a place for the
 * call. The gateway then follows the provider: it reads on to learn the usage. A cut by a revocation or a pause does not reach the provider
 * either, once a stream flows. The followed call is registered as in flight, so a graceful shutdown waits for it. Decision 0462 gives the
 * reasons.
 */
export class Departure extends Cancellation {
  /**
   * Returns the time for which the provider may go on after the caller has left. With 0 the connection to the provider is closed immediately.
   * With Infinity the provider's own deadline applies.
   */
  followMs: () => number
  /** Records the usage of the call so far. */
  onFollowed: () => void
  /**
   * Ends the stream for its caller when the call is revoked or paused, while the provider goes on. Null when the connection to the provider is
   * closed instead.
   */
  onCut: ((cut: CallCutError) => void) | null = null
  readonly #origin: CancelSignal
  readonly #deps: DepartureDeps
  #leftReason: unknown = null
  #hasLeft = false
  #hasNoPlace = false
  #isDisposed = false
  #giveBack: (() => void) | null = null
  #unregister: (() => void) | null = null
  #stopTimer: (() => void) | null = null
  #leftAtMs = 0
  #timedAtMs = 0

  constructor(origin: CancelSignal, deps: DepartureDeps) {
    super()
    this.#origin = origin
    this.#deps = deps
    this.followMs = deps.followMs
    this.onFollowed = deps.onFollowed
    if (origin.aborted) this.abort(origin.reason)
    else origin.addEventListener('abort', this.#onOrigin, { once: true })
  }

  /** True when the caller has left and the provider is followed. It is followed until `aborted` or until the call is settled. */
  get hasLeft(): boolean {
    return this.#hasLeft
  }

  /** True when the provider would have been followed, but there was no place left. */
  get hasNoPlace(): boolean {
    return this.#hasNoPlace
  }

  /** The reason for which the caller has left. */
  get leftReason(): unknown {
    return this.#leftReason
  }

  /** No new step begins for a caller who has left. */
  override throwIfAborted(): void {
    if (this.#hasLeft) throw this.#leftReason
    super.throwIfAborted()
  }

  /** Notes that the caller has left or was cut off. A second call changes nothing. */
  leave(reason: unknown): void {
    if (this.#hasLeft || this.#isDisposed || this.aborted) return
    const { clock, inflight, departures, orgId, owners } = this.#deps
    const forMs = reason instanceof GivenUpError ? 0 : this.followMs()
    this.#giveBack = forMs > 0 ? departures.take(orgId) : null
    this.#hasNoPlace = forMs > 0 && this.#giveBack === null
    if (this.#giveBack === null) {
      this.abort(reason)
      return
    }
    this.#hasLeft = true
    this.#leftReason = reason
    this.#unregister = inflight.register(owners, { abort: cut => this.#cut(cut) })
    this.#leftAtMs = clock.monotonicMs()
    if (forMs !== Number.POSITIVE_INFINITY) this.#endIn(forMs)
    this.onFollowed()
    this.#recheck()
  }

  /** Notes that the provider still sends. It is then followed longer, at most for `readOnLongestMs` after the caller left. */
  flows(): void {
    const nowMs = this.#deps.clock.monotonicMs()
    if (this.#stopTimer === null || this.aborted || nowMs - this.#timedAtMs < timerMinMs) return
    this.#endIn(Math.max(0, Math.min(this.followMs(), this.#leftAtMs + readOnLongestMs - nowMs)))
  }

  #endIn(ms: number): void {
    const { clock } = this.#deps
    this.#stopTimer?.()
    this.#timedAtMs = clock.monotonicMs()
    this.#stopTimer = clock.after(ms, () => this.#end(this.#leftReason))
  }

  /** Ends the departure when the call is over. */
  dispose(): void {
    if (this.#isDisposed) return
    this.#isDisposed = true
    this.#origin.removeEventListener('abort', this.#onOrigin)
    this.#stopTimer?.()
    this.#unregister?.()
    this.#giveBack?.()
  }

  /** Ends a followed call. Unlike in `#onOrigin`, nobody else reports the exception of a listener. */
  #end(reason: unknown): void {
    if (this.aborted) return
    this.abort(reason)
    if (this.listenerError !== null) this.#deps.onListenerError(this.listenerError)
  }

  readonly #onOrigin = (): void => {
    const { reason } = this.#origin
    if (!(reason instanceof CallCutError)) this.leave(reason)
    else if (this.onCut !== null && cutsByOwners.has(reason.reason)) this.onCut(reason)
    else this.abort(reason)
    // The origin keeps the exception for whoever cancelled the call.
    if (this.listenerError !== null) throw this.listenerError
  }

  /** Handles a cut of a followed call. */
  #cut(cut: CallCutError): void {
    if (this.onCut === null || !cutsByOwners.has(cut.reason)) this.#end(cut)
  }

  /** A revocation between the leaving and the registration has not reached this call. */
  #recheck(): void {
    const cut = (): void => this.#cut(new CallCutError('agent_revoked'))
    try {
      this.#deps.recheck()?.catch(cut)
    } catch {
      cut()
    }
  }
}
