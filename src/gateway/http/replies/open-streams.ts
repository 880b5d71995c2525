import type { ServerResponse } from 'node:http'
import type { Clock } from '../../../platform/clock.ts'

/** A stream that is being sent. `silentTicks` is set to 0 with every chunk: the only thing that a chunk costs here. */
export interface OpenStream {
  silentTicks: number
  readonly response: ServerResponse
  readonly keepAlive: () => Uint8Array | null
}

/** Ticks in the longest silence: it is broken at the last of them, so between 4/5 and all of it. */
const ticksOfSilence = 5

/**
 * Keeps silent streams alive: proxies and clients hang up on a connection that says nothing for long, and a model that thinks says
 * nothing. One ticker for all streams of the process, which runs while there are any.
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

  open(response: ServerResponse, keepAlive: () => Uint8Array | null): OpenStream {
    const stream: OpenStream = { silentTicks: 0, response, keepAlive }
    this.#streams.add(stream)
    this.#stop ??= this.#clock.every(this.#tickMs, () => this.#tick())
    return stream
  }

  close(stream: OpenStream): void {
    this.#streams.delete(stream)
  }

  #tick(): void {
    for (const stream of this.#streams) {
      stream.silentTicks++
      if (stream.silentTicks >= ticksOfSilence) speak(stream)
    }
    if (this.#streams.size > 0) return
    this.#stop?.()
    this.#stop = null
  }
}

/** A client that does not read what it was sent needs nothing more, and an open event is not broken into: the next tick asks again. */
function speak(stream: OpenStream): void {
  const { response, keepAlive } = stream
  if (response.destroyed || response.writableNeedDrain) return
  const bytes = keepAlive()
  if (bytes === null) return
  stream.silentTicks = 0
  response.write(bytes)
}
