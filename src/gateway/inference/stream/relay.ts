import type { Clock } from '../../../platform/clock.ts'
import type { CancelSignal } from '../../../platform/loop/cancellation.ts'
import { CallCutError } from '../../../platform/loop/inflight.ts'
import type { StreamPump, StreamSink } from '../../../platform/loop/stream-sink.ts'
import type { StreamFault } from '../../wire/chat/chat-stream.ts'
import { EmptyLinesError } from '../../wire/sse/sse-lines.ts'
import { tokensOfChars } from '../charge/estimate.ts'
import { type Charging, leftUsage, readOn, type Stall, settleStalled, settleUnread, type UnreadOutcome } from '../leaving/read-on.ts'
import { type StreamAnswer, takeFirst } from '../replies/answer.ts'
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
  /** Set while the client has no room for the output that has arrived. */
  stall: Stall | null
  /** Ends the stream from outside while the provider's bytes are awaited. */
  end: (end: StreamEnd) => void
}

/** A stream that is being relayed to the client. */
export interface RelayedStream {
  /** Relays the stream to a reader. Rejects when the call's end could not be recorded. */
  readonly pump: StreamPump
  /** Returns the bytes that keep a silent client waiting. Null while other bytes are on their way or an event is open. */
  keepAlive(): Uint8Array | null
}

/** Returns the relay of a stream. It starts with `pump`. */
export function relayStream(answer: StreamAnswer, given: RelayDeps): RelayedStream {
  const deps: Relay = { ...given, broke: false, isSilent: false, isWaiting: false, stall: null, end: () => {} }
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
  return { pump: sink => relay(answer, deps, sink), keepAlive }
}

/**
 * Relays a stream. While nothing has to wait, the adapter's output for each chunk goes to the client in the same call in which the chunk arrives
 * (`Lane`). Here are all steps that may wait: the end, the hold, and a client without room.
 *
 * The call is settled exactly once: before its last byte is sent, when it is cut, when the provider breaks off, or after the client has left.
 * After a client has left or was cut, a provider that is worth following is read on. There is no failover after the first byte: a stream that
 * breaks ends with an error frame.
 */
async function relay(answer: StreamAnswer, deps: Relay, sink: StreamSink): Promise<void> {
  const { adapter, body } = answer
  const { meter, signal, departure } = deps
  const cutter = new Cutter(answer, deps)
  const lane = new Lane(answer, deps, sink, cutter)
  deps.end = end => cutter.end(end)
  try {
    for (;;) {
      if (adapter.refused !== null && !adapter.failed) cutter.end(refusedEnd(adapter.refused))
      if (adapter.finished || adapter.failed) {
        deps.broke = adapter.failed && adapter.refused === null
        const settled = adapter.refused === null ? settle(answer, deps, adapter.failed ? 'upstream_broke' : 'ok') : settleUnread(answer, deps, 'upstream_broke')
        if (settled !== undefined) await settled
        const last = lane.output
        if (last !== null && !sink.push(last)) await sink.room()
        const { bytes } = adapter.end()
        if (bytes !== null && !sink.isGone) sink.push(bytes)
        return
      }
      const covered = lane.covered()
      if (!lane.send()) {
        deps.stall = { sinceMs: deps.clock.monotonicMs(), tokens: tokensOfChars(adapter.outputChars) }
        await sink.room()
        lane.isFull = false
      }
      if (sink.isGone) return
      deps.stall = null
      if (covered !== true && (covered === false || !(await covered))) cutter.end(deps.hold.refusal)
      if (cutter.frame !== null) break
      if (cutter.wanted !== null && (adapter.atBoundary || cutter.expired)) break
      deps.isWaiting = true
      const end = await body.flow(lane.take, meter.orgId)
      deps.isWaiting = false
      if (departure?.hasLeft === true || end === 'ended') break
    }
    if (departure?.hasLeft !== true) await lastFrames(answer, deps, cutter.wanted, sink)
    else if (cutter.frame !== null) sink.push(cutter.frame)
  } catch (error) {
    deps.isWaiting = false
    // The following ends here. That says nothing about the route.
    if (departure?.hasLeft === true) {
      if (cutter.frame !== null) sink.push(cutter.frame)
      return
    }
    // The provider is not at fault: the end could not be recorded. A reply without its record must not get an end mark.
    if (meter.ended && !cutter.expired) throw error
    if (cutter.wanted === null && signal.aborted && !(signal.reason instanceof CallCutError)) return
    if (cutter.wanted === null) deps.broke = true
    deps.isSilent = cutter.wanted === null && isIdleTimeout(error)
    await lastFrames(answer, deps, cutter.wanted ?? { name: 'upstream_stream_error', message: brokenMessage(error) }, sink)
  } finally {
    cutter.dispose()
    if (!meter.ended && cutter.wanted === null) departure?.leave(new Error('nobody reads the stream any more'))
    const ended = cutter.finish()
    // A caller who was cut waits for nothing more.
    if (cutter.frame === null) await ended
  }
}

/** The synchronous way of a chunk from the provider to the client. It stops at everything that may wait, and leaves that to `relay`. */
class Lane {
  /** The output that is not sent yet. */
  output: Uint8Array | null
  /** True when the client had no room after the last output. */
  isFull = false
  readonly #answer: StreamAnswer
  readonly #deps: Relay
  readonly #sink: StreamSink
  readonly #cutter: Cutter
  readonly #usage: () => ReturnType<typeof leftUsage>
  /** What the hold has said of the last chunk. Null when it was not asked. */
  #covered: boolean | Promise<boolean> | null = null

  constructor(answer: StreamAnswer, deps: Relay, sink: StreamSink, cutter: Cutter) {
    this.output = takeFirst(answer)
    this.#answer = answer
    this.#deps = deps
    this.#sink = sink
    this.#cutter = cutter
    this.#usage = () => leftUsage(answer, deps)
  }

  /** Takes a chunk of the provider. Returns false when `relay` must go on. */
  readonly take = (chunk: Uint8Array): boolean => {
    const { adapter, held } = this.#answer
    const output = adapter.push(chunk)
    // Nobody reads the output. The chunk is read for its usage.
    if (this.#deps.departure?.hasLeft === true) return false
    this.output = output
    const lacking = held.keeps(adapter.heldBytes)
    if (lacking !== null) this.#cutter.end(noRoomEnd(lacking))
    if (adapter.finished || adapter.failed || adapter.refused !== null || this.#cutter.wanted !== null) return false
    this.#covered = this.#ask()
    return this.#covered === true && this.send()
  }

  /** Says whether the hold covers the output so far. */
  covered(): boolean | Promise<boolean> {
    const covered = this.#covered ?? this.#ask()
    this.#covered = null
    return covered
  }

  #ask(): boolean | Promise<boolean> {
    const { hold, meter } = this.#deps
    const covered = hold.afterChunk(tokensOfChars(this.#answer.adapter.outputChars))
    meter.progress(this.#usage)
    return covered
  }

  /** Sends the output. Returns false when the client has no room for more. */
  send(): boolean {
    const { output } = this
    this.output = null
    if (output !== null) this.isFull = !this.#sink.push(output)
    return !this.isFull
  }
}

/** Finishes a stream after the client's last byte. The provider is read on when it is worth following, and then the call is settled. */
async function settleBehind(answer: StreamAnswer, deps: Relay, cutter: Cutter): Promise<void> {
  const { meter, departure } = deps
  try {
    if (!meter.ended && departure !== null) await readOn(answer, departure, deps)
    const isFollowed = departure?.hasLeft === true && deps.thinksUnseen
    if (!isFollowed) await cutter.settleStall(outcomeBehind(answer, deps, cutter))
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
async function lastFrames(answer: StreamAnswer, deps: Relay, wanted: StreamEnd | null, sink: StreamSink): Promise<void> {
  const { body, adapter } = answer
  body.destroy()
  if (wanted === null) {
    const { bytes, complete } = adapter.end()
    // A body without its end mark and without the final usage was cut short, even when the connection closed cleanly.
    if (!complete) deps.broke = true
    await settle(answer, deps, complete ? 'ok' : 'upstream_broke')
    if (bytes !== null && !sink.push(bytes)) await sink.room()
    if (complete || adapter.failed || sink.isGone) return
    sink.push(adapter.fail(faultOf({ name: 'upstream_stream_error', message: 'The provider ended the stream without its end mark.' })))
    return
  }
  if (adapter.refused !== null || deps.isSilent) await settleUnread(answer, deps, 'upstream_broke')
  else if (wanted.name === 'upstream_stream_error') await settle(answer, deps, 'upstream_broke')
  else await settleUnread(answer, deps, 'cut')
  sink.push(adapter.fail(faultOf(wanted)))
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
  #stallEnd: Promise<void> | null = null

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
    } else if (adapter.atBoundary && this.#deps.stall === null) body.destroy()
    this.#stopTimer = clock.after(finishEventMs, () => this.#expire())
  }

  /** Settles for a client that does not read. It must not keep the hold, nor stop the gateway from reading the provider on. */
  #expire(): void {
    if (this.frame !== null) {
      if (!this.#deps.isWaiting) void this.finish()
      return
    }
    this.expired = true
    // A charge that cannot be committed now is in the journal.
    this.#settleExpired().catch(() => undefined)
  }

  async #settleExpired(): Promise<void> {
    await this.settleStall('cut')
    this.#answer.body.destroy()
    if (!this.#deps.meter.ended) await settleUnread(this.#answer, this.#deps, 'cut')
  }

  /** Settles a call whose caller does not read, once. It does nothing for other calls. */
  async settleStall(outcome: UnreadOutcome): Promise<void> {
    const { stall, meter } = this.#deps
    if (meter.ended || stall === null) return
    this.#stallEnd ??= settleStalled(this.#answer, this.#deps, stall, outcome)
    await this.#stallEnd
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
    // What has arrived for a caller who did not read is counted first.
    else if (this.wanted === null && this.#deps.stall === null) this.#answer.body.destroy()
  }

  dispose(): void {
    this.#deps.signal.removeEventListener('abort', this.#onAbort)
    this.#stopTimer?.()
  }
}
