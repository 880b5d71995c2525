import type { CancelSignal } from '../../platform/cancellation.ts'
import type { Clock } from '../../platform/clock.ts'
import { CallCutError } from '../../platform/inflight.ts'
import type { StreamAnswer } from './answer.ts'
import { tokensOfChars } from './estimate.ts'
import type { Meter } from './meter.ts'
import type { StreamCover } from './stream-cover.ts'
import { endOfCut, faultOf, type StreamEnd } from './stream-end.ts'

/** How long the event under way may take to finish when the gateway ends a stream. */
const finishEventMs = 200

export interface RelayDeps {
  readonly clock: Clock
  readonly meter: Meter
  readonly cover: StreamCover
  readonly signal: CancelSignal
  /** The model thinks without showing it. */
  readonly thinksUnseen: boolean
  /** The stream is over, one way or the other; `broke`: the provider broke it off after the first byte. */
  onEnd(broke: boolean): void
}

/** What one relay remembers beside what it was given. */
interface Relay extends RelayDeps {
  broke: boolean
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
  const deps: Relay = { ...given, broke: false, isWaiting: false, end: () => {} }
  const keepAlive = (): Uint8Array | null => {
    if (!deps.isWaiting) return null
    const { passage } = answer
    if (deps.thinksUnseen && !deps.cover.duringSilence(tokensOfChars(passage.outputChars))) {
      deps.end(deps.cover.refusal)
      return null
    }
    return passage.keepAlive()
  }
  return { chunks: relay(answer, deps), keepAlive }
}

/**
 * Relays a stream: what its passage makes of each chunk goes to the client, no timer stands between. The call is settled exactly
 * once: before its last byte goes out, when it is cut, when the provider breaks off, or when the client goes away (`return()` of this
 * generator). After the first byte there is no failover: a stream that breaks ends with an error frame.
 */
async function* relay(answer: StreamAnswer, deps: Relay): AsyncGenerator<Uint8Array, void, undefined> {
  const { passage, rest, body } = answer
  const { meter, signal } = deps
  const cutter = new Cutter(answer, deps)
  deps.end = end => cutter.end(end)
  try {
    let chunk = answer.first
    for (;;) {
      if (passage.finished || passage.failed) {
        deps.broke = passage.failed
        await settle(answer, deps, passage.failed ? 'upstream_broke' : 'ok')
        if (chunk !== null) yield chunk
        const { bytes } = passage.end()
        if (bytes !== null) yield bytes
        return
      }
      const covered = deps.cover.afterChunk(tokensOfChars(passage.outputChars))
      meter.progress(passage.usage())
      if (chunk !== null) yield chunk
      if (covered !== true && (covered === false || !(await covered))) cutter.end(deps.cover.refusal)
      if (cutter.wanted !== null && (passage.atBoundary || cutter.expired)) break
      deps.isWaiting = true
      const next: IteratorResult<Uint8Array> = await rest.next()
      deps.isWaiting = false
      if (next.done) break
      chunk = passage.push(next.value)
    }
    yield* lastFrames(answer, deps, cutter.wanted)
  } catch (error) {
    deps.isWaiting = false
    // Not the provider: the end could not be written down, and a reply that is not accounted for has no end mark.
    if (meter.ended && !cutter.expired) throw error
    if (signal.aborted && !(signal.reason instanceof CallCutError)) return
    if (cutter.wanted === null) deps.broke = true
    yield* lastFrames(
      answer,
      deps,
      cutter.wanted ?? { name: 'upstream_stream_error', message: `The provider broke off the stream (${error instanceof Error ? error.name : 'error'}).` },
    )
  } finally {
    cutter.dispose()
    body.destroy()
    deps.onEnd(deps.broke)
    if (!meter.ended) await settle(answer, deps, cutter.wanted === null ? 'client_gone' : 'cut')
  }
}

/** The end of a stream that had none of its own: an end that we put, or an upstream that closed without its end mark. */
async function* lastFrames(answer: StreamAnswer, deps: Relay, wanted: StreamEnd | null): AsyncGenerator<Uint8Array, void, undefined> {
  const { body, passage } = answer
  body.destroy()
  if (wanted === null) {
    const { bytes, complete } = passage.end()
    if (complete) {
      await settle(answer, deps, 'ok')
      if (bytes !== null) yield bytes
      return
    }
    // A body that ends without its end mark and without the final usage was cut short, however cleanly the connection closed.
    deps.broke = true
    await settle(answer, deps, 'upstream_broke')
    if (bytes !== null) yield bytes
    if (!passage.failed) yield passage.fail(faultOf({ name: 'upstream_stream_error', message: 'The provider ended the stream without its end mark.' }))
    return
  }
  await settle(answer, deps, wanted.name === 'upstream_stream_error' ? 'upstream_broke' : 'cut')
  yield passage.fail(faultOf(wanted))
}

function settle({ passage }: StreamAnswer, deps: RelayDeps, outcome: 'ok' | 'upstream_broke' | 'cut' | 'client_gone'): void | Promise<void> {
  return deps.meter.settle(passage.usage(), !passage.reported, outcome, 200)
}

/** Ends a stream from outside the read loop: at once when the bytes stand at an event boundary, else when the event is done. */
class Cutter {
  wanted: StreamEnd | null = null
  expired = false
  readonly #answer: StreamAnswer
  readonly #deps: RelayDeps
  #stopTimer: (() => void) | null = null

  constructor(answer: StreamAnswer, deps: RelayDeps) {
    this.#answer = answer
    this.#deps = deps
    answer.body.detachSignal()
    if (deps.signal.aborted) this.#onAbort()
    else deps.signal.addEventListener('abort', this.#onAbort, { once: true })
  }

  end(end: StreamEnd): void {
    if (this.wanted !== null) return
    this.wanted = end
    if (this.#answer.passage.atBoundary) this.#answer.body.destroy()
    this.#stopTimer = this.#deps.clock.after(finishEventMs, () => {
      this.expired = true
      this.#answer.body.destroy()
      // A client that does not read must not keep its money held. What cannot be committed now is in the journal all the same.
      if (!this.#deps.meter.ended) Promise.resolve(settle(this.#answer, this.#deps, 'cut')).catch(() => undefined)
    })
  }

  readonly #onAbort = (): void => {
    const reason: unknown = this.#deps.signal.reason
    if (reason instanceof CallCutError) this.end(endOfCut(reason))
    else this.#answer.body.destroy()
  }

  dispose(): void {
    this.#deps.signal.removeEventListener('abort', this.#onAbort)
    this.#stopTimer?.()
  }
}
