import type { Clock } from '../../../platform/clock.ts'
import { Cancellation, type CancelSignal } from '../../../platform/loop/cancellation.ts'
import { CallCutError, type CallOwners, type CutReason, type Inflight } from '../../../platform/loop/inflight.ts'
import { type Departures, readOnLongestMs } from './departures.ts'

export interface DepartureDeps {
  readonly clock: Pick<Clock, 'after' | 'monotonicMs'>
  readonly inflight: Inflight
  readonly departures: Departures
  readonly orgId: number
  /** Whose end ends the call also behind its caller's back. */
  readonly owners: CallOwners
  /** What `followMs` of the departure is at first. */
  readonly followMs: () => number
  /** Throws, or rejects, when the caller was revoked. */
  recheck(): void | Promise<void>
  /** The caller has left and the provider is followed. */
  onFollowed(): void
}

/** Cuts that somebody makes of calls of his own, or of his organisation's: they are no discount. */
const cutsByOwners: ReadonlySet<CutReason> = new Set(['agent_revoked', 'agent_paused', 'key_revoked', 'token_revoked'])

/** The end of reading on is put off at most so often. */
const timerMinMs = 1000

/** The abort reason of a caller inside the gateway that gives a call up and waits for its end: nobody follows it. */
export class GivenUpError extends Error {
  override readonly name = 'GivenUpError'
}

/**
 * The end of a call as its provider sees it. A cut by the gateway reaches the provider immediately. A caller who leaves does not: while
 * there is a place for it, the provider is followed, so that what it made is known. Neither does, once a stream flows, the cut that a
 * revoke or a pause makes. The followed call is registered as in flight, so a graceful shutdown waits for it. Decision 0462 says why.
 */
export class Departure extends Cancellation {
  /** How long the provider may go on now that the caller has left; 0: it is hung up on immediately; Infinity: until its own deadline. */
  followMs: () => number
  /** Writes down what the call has used by now. */
  onFollowed: () => void
  /** Ends the stream for its caller when the call is revoked or paused; the provider is not told. Null: the provider is hung up on. */
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

  /** The caller has left. The provider is followed until `aborted`, or until the call is settled. */
  get hasLeft(): boolean {
    return this.#hasLeft
  }

  /** The provider would have been followed, and too many others are. */
  get hasNoPlace(): boolean {
    return this.#hasNoPlace
  }

  /** Why the caller has left. */
  get leftReason(): unknown {
    return this.#leftReason
  }

  /** Nothing new begins for a caller who has left. */
  override throwIfAborted(): void {
    if (this.#hasLeft) throw this.#leftReason
    super.throwIfAborted()
  }

  /** The caller has left, or is sent away. Again: nothing changes. */
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

  /** The provider goes on sending: it is followed on, at most for `readOnLongestMs` from the leaving. */
  flows(): void {
    const nowMs = this.#deps.clock.monotonicMs()
    if (this.#stopTimer === null || this.aborted || nowMs - this.#timedAtMs < timerMinMs) return
    this.#endIn(Math.max(0, Math.min(this.followMs(), this.#leftAtMs + readOnLongestMs - nowMs)))
  }

  #endIn(ms: number): void {
    const { clock } = this.#deps
    this.#stopTimer?.()
    this.#timedAtMs = clock.monotonicMs()
    this.#stopTimer = clock.after(ms, () => this.abort(this.#leftReason))
  }

  /** The call is over. */
  dispose(): void {
    if (this.#isDisposed) return
    this.#isDisposed = true
    this.#origin.removeEventListener('abort', this.#onOrigin)
    this.#stopTimer?.()
    this.#unregister?.()
    this.#giveBack?.()
  }

  readonly #onOrigin = (): void => {
    const { reason } = this.#origin
    if (!(reason instanceof CallCutError)) this.leave(reason)
    else if (this.onCut !== null && cutsByOwners.has(reason.reason)) this.onCut(reason)
    else this.abort(reason)
  }

  /** Of a followed call. */
  #cut(cut: CallCutError): void {
    if (this.onCut === null || !cutsByOwners.has(cut.reason)) this.abort(cut)
  }

  /** A revoke between the leaving and the registration has reached nobody. */
  #recheck(): void {
    const cut = (): void => this.#cut(new CallCutError('agent_revoked'))
    try {
      this.#deps.recheck()?.catch(cut)
    } catch {
      cut()
    }
  }
}
