import type { Clock } from '../../../platform/clock.ts'
import type { CancelSignal } from '../../../platform/loop/cancellation.ts'
import { CallCutError } from '../../../platform/loop/inflight.ts'
import type { StreamFault } from '../../wire/chat/chat-stream.ts'
import { tokensOfChars } from '../charge/estimate.ts'
import { type Charging, leftUsage, readOn, settleUnread, type UnreadOutcome } from '../leaving/read-on.ts'
import type { StreamAnswer } from '../replies/answer.ts'
import { noRoomEnd } from '../replies/no-room.ts'
import { endOfCut, faultOf, type StreamEnd } from './stream-end.ts'

/** How long the event under way may take to finish when the gateway ends a stream. */
const finishEventMs = 200

export interface RelayDeps extends Charging {
  readonly clock: Clock
  /** The departure, where there is one. */
  readonly signal: CancelSignal
  /** The stream is over, one way or the other; `broke`: the provider broke it off after the first byte. */
  onEnd(broke: boolean): void
}

/** What one relay remembers beside what it was given. */
interface Relay extends RelayDeps {
  broke: boolean
  /** The stream was given up because its provider had been silent for too long: what it thought unseen meanwhile is charged as it was held. */
  isSilent: boolean
  /** All that was given out has been sent, and the provider's next bytes are awaited. */
  isWaiting: boolean
  /** Ends the stream from outside while the provider is awaited. */
  end: (end: StreamEnd) => void
}

/** A stream on its way to the client. */
export interface RelayedStream {
  readonly chunks: AsyncGenerator<Uint8Array, void, undefined>
  /** What may be sent now to keep a silent client waiting; null while something else is on its way or an event is open. */
  keepAlive(): Uint8Array | null
}

/** Relays a stream; nothing of it happens before the first chunk is asked for. */
export function relayStream(answer: StreamAnswer, given: RelayDeps): RelayedStream {
  const deps: Relay = { ...given, broke: false, isSilent: false, isWaiting: false, end: () => {} }
  const keepAlive = (): Uint8Array | null => {
    // Behind a caller who has left the hold is not extended any more.
    if (!deps.isWaiting || deps.departure?.hasLeft === true) return null
    const { adapter } = answer
    if (deps.thinksUnseen && !deps.hold.duringSilence(tokensOfChars(adapter.outputChars))) {
      deps.end(deps.hold.refusal)
      return null
    }
    return adapter.keepAlive()
  }
  return { chunks: relay(answer, deps), keepAlive }
}

/**
 * Relays a stream: what its adapter makes of each chunk goes to the client, no timer is in between. The call is settled exactly
 * once: before its last byte goes out, when it is cut, when the provider breaks off, or behind a client that goes away (`return()` of this
 * generator). Behind a client that has gone or was cut, a provider that is worth it is read on. After the first byte there is no failover: a
 * stream that breaks ends with an error frame.
 */
async function* relay(answer: StreamAnswer, deps: Relay): AsyncGenerator<Uint8Array, void, undefined> {
  const { adapter, rest } = answer
  const { meter, signal, departure } = deps
  const cutter = new Cutter(answer, deps)
  deps.end = end => cutter.end(end)
  try {
    let chunk = answer.first
    for (;;) {
      if (adapter.refused !== null && !adapter.failed) cutter.end(refusedEnd(adapter.refused))
      if (adapter.finished || adapter.failed) {
        deps.broke = adapter.failed && adapter.refused === null
        if (adapter.refused === null) await settle(answer, deps, adapter.failed ? 'upstream_broke' : 'ok')
        else await settleUnread(answer, deps, 'upstream_broke')
        if (chunk !== null) yield chunk
        const { bytes } = adapter.end()
        if (bytes !== null) yield bytes
        return
      }
      const covered = deps.hold.afterChunk(tokensOfChars(adapter.outputChars))
      meter.progress(leftUsage(answer, deps))
      if (chunk !== null) yield chunk
      if (covered !== true && (covered === false || !(await covered))) cutter.end(deps.hold.refusal)
      if (cutter.frame !== null) break
      if (cutter.wanted !== null && (adapter.atBoundary || cutter.expired)) break
      deps.isWaiting = true
      const next: IteratorResult<Uint8Array> = await rest.next()
      deps.isWaiting = false
      if (departure?.hasLeft === true) {
        if (!next.done && next.value.byteLength > 0) adapter.push(next.value)
        break
      }
      if (next.done) break
      chunk = adapter.push(next.value)
      const lacking = answer.held.keeps(adapter.heldBytes)
      if (lacking !== null) cutter.end(noRoomEnd(lacking))
    }
    if (departure?.hasLeft !== true) yield* lastFrames(answer, deps, cutter.wanted)
    else if (cutter.frame !== null) yield cutter.frame
  } catch (error) {
    deps.isWaiting = false
    // It is followed no further, and that is no matter of the route's.
    if (departure?.hasLeft === true) {
      if (cutter.frame !== null) yield cutter.frame
      return
    }
    // Not the provider: the end could not be written down, and a reply that is not accounted for has no end mark.
    if (meter.ended && !cutter.expired) throw error
    if (cutter.wanted === null && signal.aborted && !(signal.reason instanceof CallCutError)) return
    if (cutter.wanted === null) deps.broke = true
    deps.isSilent = cutter.wanted === null && isIdleTimeout(error)
    yield* lastFrames(
      answer,
      deps,
      cutter.wanted ?? { name: 'upstream_stream_error', message: `The provider broke off the stream (${error instanceof Error ? error.name : 'error'}).` },
    )
  } finally {
    cutter.dispose()
    if (!meter.ended && cutter.wanted === null) departure?.leave(new Error('nobody reads the stream any more'))
    const ended = cutter.finish()
    // A caller who was cut waits for nothing more.
    if (cutter.frame === null) await ended
  }
}

/** What is done behind the last byte for the client: the provider is followed where it is worth it, then the call is settled. */
async function settleBehind(answer: StreamAnswer, deps: Relay, cutter: Cutter): Promise<void> {
  const { meter, departure } = deps
  try {
    if (!meter.ended && departure !== null) await readOn(answer, departure, deps)
    answer.body.destroy()
    if (!meter.ended) await settleUnread(answer, deps, outcomeBehind(answer, deps, cutter))
  } finally {
    answer.held.release()
    // Last: a graceful shutdown waits for calls that are not settled.
    deps.onEnd(deps.broke)
  }
}

/** STREAM_IDLE_TIMEOUT_MS is over. */
const isIdleTimeout = (error: unknown): boolean => error instanceof Error && 'code' in error && error.code === 'UND_ERR_BODY_TIMEOUT'

/** Who ended a call that is settled behind the last byte for the client. */
function outcomeBehind({ adapter }: StreamAnswer, { signal }: Relay, { wanted }: Cutter): UnreadOutcome {
  if (adapter.refused !== null) return 'upstream_broke'
  return wanted === null && !(signal.reason instanceof CallCutError) ? 'client_gone' : 'cut'
}

/** The end of a stream that had none of its own: an end that we put, or an upstream that closed without its end mark. */
async function* lastFrames(answer: StreamAnswer, deps: Relay, wanted: StreamEnd | null): AsyncGenerator<Uint8Array, void, undefined> {
  const { body, adapter } = answer
  body.destroy()
  if (wanted === null) {
    const { bytes, complete } = adapter.end()
    if (complete) {
      await settle(answer, deps, 'ok')
      if (bytes !== null) yield bytes
      return
    }
    // A body that ends without its end mark and without the final usage was cut short, however cleanly the connection closed.
    deps.broke = true
    await settle(answer, deps, 'upstream_broke')
    if (bytes !== null) yield bytes
    if (!adapter.failed) yield adapter.fail(faultOf({ name: 'upstream_stream_error', message: 'The provider ended the stream without its end mark.' }))
    return
  }
  if (adapter.refused !== null || deps.isSilent) await settleUnread(answer, deps, 'upstream_broke')
  else if (wanted.name === 'upstream_stream_error') await settle(answer, deps, 'upstream_broke')
  else await settleUnread(answer, deps, 'cut')
  yield adapter.fail(faultOf(wanted))
}

/** The end of a stream of which this gateway takes no more. */
const refusedEnd = ({ message }: StreamFault): StreamEnd => ({ name: 'upstream_stream_error', message })

function settle({ adapter }: StreamAnswer, deps: RelayDeps, outcome: 'ok' | 'upstream_broke'): void | Promise<void> {
  return deps.meter.settle(adapter.usage(), !adapter.reported, outcome, 200)
}

/**
 * Ends a stream from outside the read loop. Where the provider is worth following, its caller gets the end immediately and the provider is told
 * nothing of it; else both end when the bytes stand at an event boundary, or when the event is done. Decision 0462 says why.
 */
class Cutter {
  wanted: StreamEnd | null = null
  expired = false
  /** The end for a caller behind whom the provider is followed. */
  frame: Uint8Array | null = null
  readonly #answer: StreamAnswer
  readonly #deps: Relay
  #stopTimer: (() => void) | null = null
  #finished: Promise<void> | null = null

  constructor(answer: StreamAnswer, deps: Relay) {
    this.#answer = answer
    this.#deps = deps
    const { signal, departure, isFollowed } = deps
    answer.body.detachSignal()
    if (signal.aborted) this.#onAbort()
    else signal.addEventListener('abort', this.#onAbort, { once: true })
    if (departure !== null && isFollowed) departure.onCut = cut => this.end(endOfCut(cut))
  }

  end(end: StreamEnd): void {
    const { adapter, body } = this.#answer
    const { meter, departure, clock, isFollowed } = this.#deps
    const hasLeft = (): boolean => departure?.hasLeft === true
    // A stream that has ended already goes to its end, and one that is followed is over for its caller.
    if (this.wanted !== null || meter.ended || adapter.finished || adapter.failed || hasLeft()) return
    this.wanted = end
    if (isFollowed) departure?.leave(new Error(end.name))
    if (hasLeft()) {
      this.frame = adapter.fail(faultOf(end))
      body.nudge()
    } else if (adapter.atBoundary) body.destroy()
    this.#stopTimer = clock.after(finishEventMs, () => this.#expire())
  }

  /** A client that does not read must not keep its money held, nor the provider from being followed. */
  #expire(): void {
    if (this.frame !== null) {
      if (!this.#deps.isWaiting) void this.finish()
      return
    }
    this.expired = true
    this.#answer.body.destroy()
    // What cannot be committed now is in the journal all the same.
    if (!this.#deps.meter.ended) settleUnread(this.#answer, this.#deps, 'cut').catch(() => undefined)
  }

  /** Follows the provider and settles, once. */
  finish(): Promise<void> {
    if (this.#finished === null) {
      this.#finished = settleBehind(this.#answer, this.#deps, this)
      // What cannot be committed now is in the journal all the same; a caller who waits gets the error.
      this.#finished.catch(() => undefined)
    }
    return this.#finished
  }

  readonly #onAbort = (): void => {
    const reason: unknown = this.#deps.signal.reason
    if (this.#deps.departure?.hasLeft === true) this.#answer.body.destroy()
    else if (reason instanceof CallCutError) this.end(endOfCut(reason))
    else if (this.wanted === null) this.#answer.body.destroy()
  }

  dispose(): void {
    this.#deps.signal.removeEventListener('abort', this.#onAbort)
    this.#stopTimer?.()
  }
}
