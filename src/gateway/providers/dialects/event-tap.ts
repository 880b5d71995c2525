import { type LineSink, SseLineScanner } from '../../wire/sse-lines.ts'
import type { TokenUsage } from '../../wire/usage.ts'
import type { StreamTap } from '../dialect.ts'

/** Reads along with a stream of named events, counts them and knows where they end; what they say is for the format. Any chunking of the same bytes gives the same result. */
export abstract class EventTap implements StreamTap, LineSink {
  usage: TokenUsage | null = null
  outputChars = 0
  finished = false
  failed = false
  events = 0
  wholeBytes = 0
  /** The event that says so has begun; the stream is finished when it is whole. */
  protected isLast = false
  readonly #lines = new SseLineScanner(this)
  #hasData = false

  get atBoundary(): boolean {
    return this.#lines.atBoundary
  }

  push(chunk: Uint8Array): void {
    this.wholeBytes = 0
    this.#lines.push(chunk)
  }

  line(bytes: Uint8Array, start: number, end: number, nextInChunk: number): void {
    if (start < end) {
      if (this.field(bytes, start, end)) this.#hasData = true
      return
    }
    this.wholeBytes = nextInChunk
    if (this.#hasData) this.events++
    this.#hasData = false
    this.eventEnds()
    if (this.isLast) this.finished = true
  }

  /** One line of an event; true when it carries data. */
  protected abstract field(bytes: Uint8Array, start: number, end: number): boolean

  protected eventEnds(): void {}
}
