import type { Clock } from '../../../platform/clock.ts'
import type { CancelSignal } from '../../../platform/loop/cancellation.ts'
import { CallCutError } from '../../../platform/loop/inflight.ts'
import type { StreamFault } from '../../wire/chat/chat-stream.ts'
import { EmptyLinesError } from '../../wire/sse/sse-lines.ts'
import { tokensOfChars } from '../charge/estimate.ts'
import { type Charging, leftUsage, readOn, settleUnread, type UnreadOutcome } from '../leaving/read-on.ts'
import type { StreamAnswer } from '../replies/answer.ts'
import { noRoomEnd } from '../replies/no-room.ts'
import { endOfCut, faultOf, type StreamEnd } from './stream-end.ts'

/** The time for the current event to finish when the gateway ends a stream. */
const finishEventMs = 200

export interface RelayDeps extends Charging {
  readonly clock: Clock
  /** The departure's signal, when there is a departure. */
  readonly signal: CancelSignal
  /** Is called when the stream is over. `broke` is true when the provider broke it off after the first byte. */
  onEnd(broke: boolean): void
}

/** The state of one relay, beside its dependencies. */
interface Relay extends RelayDeps {
  broke: boolean
  /** The stream was given up because its provider had been silent for too long: what it thought unseen meanwhile is charged as it was held. */
  isSilent: boolean
  /** True while all output is sent and the provider's next bytes are awaited. */
  isWaiting: boolean
  /** Ends the stream from outside while the provider's bytes are awaited. */
  end: (end: StreamEnd) => void
}

/** A stream that is being relayed to the client. */
export interface RelayedStream {
  readonly chunks: AsyncGenerator<Uint8Array, void, undefined>
  /** Returns the bytes that keep a silent client waiting. Null while other bytes are on their way or an event is open. */
  keepAlive(): Uint8Array | null
}

/** Relays a stream. The relay starts when the first chunk is read. */
export function relayStream(answer: StreamAnswer, given: RelayDeps): RelayedStream {
  const deps: Relay = { ...given, broke: false, isSilent: false, isWaiting: false, end: () => {} }
  const keepAlive = (): Uint8Array | null => {
    // After the caller has left, the hold is not extended any more.
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
 * Relays a stream. The adapter's output for each chunk goes to the client without a timer in between.
 *
 * The call is settled exactly once: before its last byte is sent, when it is cut, when the provider breaks off, or after the client has left
 * (`return()` of this generator). After a client has left or was cut, a provider that is worth following is read on. There is no failover after
 * the first byte: a stream that breaks ends with an error frame.
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
    // The following ends here. That says nothing about the route.
    if (departure?.hasLeft === true) {
      if (cutter.frame !== null) yield cutter.frame
      return
    }
    // The provider is not at fault: the end could not be recorded. A reply without its record must not get an end mark.
    if (meter.ended && !cutter.expired) throw error
    if (cutter.wanted === null && signal.aborted && !(signal.reason instanceof CallCutError)) return
    if (cutter.wanted === null) deps.broke = true
    deps.isSilent = cutter.wanted === null && isIdleTimeout(error)
    yield* lastFrames(answer, deps, cutter.wanted ?? { name: 'upstream_stream_error', message: brokenMessage(error) })
  } finally {
    cutter.dispose()
    if (!meter.ended && cutter.wanted === null) departure?.leave(new Error('nobody reads the stream any more'))
    const ended = cutter.finish()
    // A caller who was cut waits for nothing more.
    if (cutter.frame === null) await ended
  }
}

/** Finishes a stream after the client's last byte. The provider is read on when it is worth following, and then the call is settled. */
async function settleBehind(answer: StreamAnswer, deps: Relay, cutter: Cutter): Promise<void> {
  const { meter, departure } = deps
  try {
    if (!meter.ended && departure !== null) await readOn(answer, departure, deps)
    answer.body.destroy()
    if (!meter.ended) await settleUnread(answer, deps, outcomeBehind(answer, deps, cutter))
  } finally {
    answer.held.release()
    // This comes last, because a graceful shutdown waits for calls that are not settled.
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

/** Sends the end of a stream without its own end. Either the gateway ends the stream, or the provider closed it without an end mark. */
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
    // A body without its end mark and without the final usage was cut short, even when the connection closed cleanly.
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

function brokenMessage(error: unknown): string {
  if (error instanceof EmptyLinesError) return error.message
  return `The provider broke off the stream (${error instanceof Error ? error.name : 'error'}).`
}

/** The end of a stream of which this gateway takes no more. */
const refusedEnd = ({ message }: StreamFault): StreamEnd => ({ name: 'upstream_stream_error', message })

function settle({ adapter }: StreamAnswer, deps: RelayDeps, outcome: 'ok' | 'upstream_broke'): void | Promise<void> {
  return deps.meter.settle(adapter.usage(), !adapter.reported, outcome, 200)
}

/**
 * Ends a stream from outside the read loop. When the provider is worth following, the caller gets the end immediately and the provider goes on.
 * Otherwise both end at the next event boundary, or after `finishEventMs`. Decision 0462 gives the reasons.
 */
class Cutter {
  wanted: StreamEnd | null = null
  expired = false
  /** The end for the caller of a followed call. */
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
    // A stream that has already ended goes to its own end. A followed stream is already over for its caller.
    if (this.wanted !== null || meter.ended || adapter.finished || adapter.failed || hasLeft()) return
    this.wanted = end
    if (isFollowed) departure?.leave(new Error(end.name))
    if (hasLeft()) {
      this.frame = adapter.fail(faultOf(end))
      body.nudge()
    } else if (adapter.atBoundary) body.destroy()
    this.#stopTimer = clock.after(finishEventMs, () => this.#expire())
  }

  /** Settles for a client that does not read. It must not keep the hold, nor stop the gateway from reading the provider on. */
  #expire(): void {
    if (this.frame !== null) {
      if (!this.#deps.isWaiting) void this.finish()
      return
    }
    this.expired = true
    this.#answer.body.destroy()
    // A charge that cannot be committed now is in the journal.
    if (!this.#deps.meter.ended) settleUnread(this.#answer, this.#deps, 'cut').catch(() => undefined)
  }

  /** Follows the provider and settles, once. */
  finish(): Promise<void> {
    if (this.#finished === null) {
      this.#finished = settleBehind(this.#answer, this.#deps, this)
      // A charge that cannot be committed now is in the journal. A waiting caller gets the error.
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
