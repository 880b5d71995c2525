import { type LineSink, SseLineScanner } from '../../wire/sse/sse-lines.ts'
import type { TokenUsage } from '../../wire/usage.ts'
import type { StreamTap } from '../dialect.ts'

/** Maximum length of a model name. Every name in the catalog is shorter, so a longer one is dropped. */
const modelMaxChars = 200

/** Returns the model that a reply or its beginning names. Returns null when it names none. */
export const modelNamed = ({ model }: Readonly<Record<string, unknown>>): string | null =>
  typeof model === 'string' && model !== '' && model.length <= modelMaxChars ? model : null

/**
 * Reads a stream of named events while its bytes pass, counts the events and finds their ends. Each format reads the content of the events itself.
 * The same bytes give the same result, however they are chunked.
 */
export abstract class EventTap implements StreamTap, LineSink {
  usage: TokenUsage | null = null
  outputChars = 0
  usageChars = 0
  model: string | null = null
  begun = false
  finished = false
  failed = false
  fault: string | null = null
  over = false
  events = 0
  wholeBytes = 0
  /** True when the last event has begun. The stream is finished when that event is complete. */
  protected isLast = false
  /** True when an event with content has begun. The stream counts as begun when that event is complete. */
  protected says = false
  /** True when events are held back until the bytes end. */
  protected holdsBack = false
  readonly #lines = new SseLineScanner(this)
  #hasData = false

  get atBoundary(): boolean {
    return this.#lines.atBoundary
  }

  get heldBytes(): number {
    return this.#lines.heldBytes
  }

  push(chunk: Uint8Array): void {
    this.wholeBytes = 0
    if (!this.over) this.#lines.push(chunk)
  }

  line(bytes: Uint8Array, start: number, end: number, nextInChunk: number): void {
    if (this.over) return
    if (start < end) {
      if (this.field(bytes, start, end)) this.#hasData = true
      return
    }
    if (!this.holdsBack) this.wholeBytes = nextInChunk
    if (this.#hasData) this.events++
    this.#hasData = false
    this.eventEnds()
    if (this.says) this.begun = true
    if (this.isLast) this.finished = true
    this.over = this.finished || this.failed
  }

  /** Reads one line of an event. Returns true if the line contains data. */
  protected abstract field(bytes: Uint8Array, start: number, end: number): boolean

  protected eventEnds(): void {}
}
