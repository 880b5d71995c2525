import type { ServerResponse } from 'node:http'
import type { Clock } from '../../../platform/clock.ts'

/** A stream that is being sent. Each chunk sets `silentTicks` to 0 and costs nothing else here. */
export interface OpenStream {
  silentTicks: number
  readonly response: ServerResponse
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

/** Sends keep-alive bytes. It sends none while the client has unread data, and none in the middle of an event. In these cases the next tick tries again. */
function speak(stream: OpenStream): void {
  const { response, keepAlive } = stream
  if (response.destroyed || response.writableNeedDrain) return
  const bytes = keepAlive()
  if (bytes === null) return
  stream.silentTicks = 0
  response.write(bytes)
}
