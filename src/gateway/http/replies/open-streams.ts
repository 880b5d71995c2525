import type { Clock } from '../../../platform/clock.ts'

/** The client of a stream. Each chunk sets `silentTicks` to 0 and costs nothing else here. */
interface SilentSink {
  silentTicks: number
  /** True when the client has left. */
  readonly isGone: boolean
  /** True when the client does not read what it has. */
  readonly isFull: boolean
  push(bytes: Uint8Array): boolean
}

/** A stream that is being sent. */
export interface OpenStream {
  readonly sink: SilentSink
  readonly keepAlive: () => Uint8Array | null
}

/** Number of ticks in the maximum silence. The last tick sends keep-alive bytes, so a silence lasts between 4/5 and all of that time. */
const ticksOfSilence = 5

/**
 * Keeps silent streams alive. Proxies and clients close a connection that is silent for long, and a reasoning model sends nothing while it thinks. One
 * timer serves all streams of the process. It runs only while there are streams.
 */
export class OpenStreams {
  readonly #streams = new Set<OpenStream>()
  readonly #clock: Pick<Clock, 'every'>
  readonly #tickMs: number
  #stop: (() => void) | null = null

  constructor(clock: Pick<Clock, 'every'>, silenceMaxMs: number) {
    this.#clock = clock
    this.#tickMs = Math.max(1, Math.floor(silenceMaxMs / ticksOfSilence))
  }

  open(sink: SilentSink, keepAlive: () => Uint8Array | null): OpenStream {
    const stream: OpenStream = { sink, keepAlive }
    this.#streams.add(stream)
    this.#stop ??= this.#clock.every(this.#tickMs, () => this.#tick())
    return stream
  }

  close(stream: OpenStream): void {
    this.#streams.delete(stream)
  }

  #tick(): void {
    for (const stream of this.#streams) {
      stream.sink.silentTicks++
      if (stream.sink.silentTicks >= ticksOfSilence) speak(stream)
    }
    if (this.#streams.size > 0) return
    this.#stop?.()
    this.#stop = null
  }
}

/** Sends keep-alive bytes. It sends none to a client that does not read what it has, and none in the middle of an event; then the next tick tries again. */
function speak({ sink, keepAlive }: OpenStream): void {
  if (sink.isGone || sink.isFull) return
  const bytes = keepAlive()
  if (bytes !== null) sink.push(bytes)
}
