import { GrowingBytes } from './growing-bytes.ts'

/** Receives the lines of an event stream, without their line ends. */
export interface LineSink {
  /**
   * Receives one line, `bytes[start, end)`. An empty line ends the event. The bytes are valid only during the call. `nextInChunk` is the offset after the line
   * end in the pushed chunk.
   */
  line(bytes: Uint8Array, start: number, end: number, nextInChunk: number): void
  /**
   * Receives the bytes of a line that is too long to be joined, as they arrive. It is for sinks that pass all bytes on. `line` then receives `overlongLine`
   * in place of the line.
   */
  overlong?(part: Uint8Array): void
}

/** Replaces a line that was too long. It is a comment, which has no effect. */
export const overlongLine: Uint8Array = Buffer.from(':')

/** Maximum length of a line that is joined over several chunks. A longer line is replaced by `overlongLine`. */
export const lineMaxBytes = 8 * 1024 * 1024

/** Lines without content that every stream may have: comments, and blank lines that end no event. 50,000 keep-alives have as many. Decision 0512 gives the reasons. */
const emptyLinesMax = 100_000
/** Beyond these, a stream may have so many of them for each line of an event. */
const emptyLinesPerField = 10

/** Events without output that every stream may have. It is more than the tokens that a model can think unseen, each in an event. The project chose the number. */
const emptyEventsMax = 250_000
/** Beyond these, a stream may have so many events for each character of output. */
const eventsPerChar = 10

/** Checks the events of a stream so far against its output so far. Throws `EmptyLinesError`. Decision 0643 gives the reasons. */
export function checkEvents(events: number, outputChars: number): void {
  if (events > emptyEventsMax && events > emptyEventsMax + outputChars * eventsPerChar) throw new EmptyLinesError()
}

/** The error for a stream with too many lines without content. Each takes as much time as a line with content, and gzip makes them free for their sender. */
export class EmptyLinesError extends Error {
  override readonly name = 'EmptyLinesError'
  constructor() {
    super('The provider sent too many comments and empty events.')
  }
}

const lf = 10
const cr = 13
const colon = 58

/**
 * Splits the bytes of an event stream into lines. A line may be divided between chunks. A line inside one chunk is neither decoded nor copied. Lines end
 * with LF or CRLF. The format also allows a lone CR, but no known provider sends one, and this scanner does not treat it as a line end. Readers of streams
 * from other servers put `LineEnds` before this scanner. Decision 0377 gives the reasons.
 */
export class SseLineScanner {
  readonly #sink: LineSink
  readonly #maxBytes: number
  /** The unfinished line. */
  readonly #line = new GrowingBytes()
  #isOverlong = false
  #eventOpen = false
  /** True if the current event has a line that is not a comment. */
  #hasField = false
  #fields = 0
  #emptyLines = 0

  constructor(sink: LineSink, maxBytes = lineMaxBytes) {
    this.#sink = sink
    this.#maxBytes = maxBytes
  }

  /** True if the bytes so far end exactly between two events. */
  get atBoundary(): boolean {
    return !this.#eventOpen && !this.isInLine
  }

  /** True if a line has begun and not ended. */
  get isInLine(): boolean {
    return this.#isOverlong || this.#line.length > 0
  }

  /** The number of bytes that are kept for an unfinished line. */
  get heldBytes(): number {
    return this.#line.roomBytes
  }

  /** Splits the bytes of a chunk from `start` to `end`. Throws `EmptyLinesError`. */
  push(chunk: Uint8Array, start = 0, end = chunk.length): void {
    let from = start
    while (from < end) {
      const at = chunk.indexOf(lf, from)
      if (at === -1 || at >= end) break
      if (this.isInLine || bareLength(chunk, from, at) > this.#maxBytes) this.#emitJoined(chunk, from, at)
      else this.#emit(chunk, from, at, at + 1)
      from = at + 1
    }
    if (from < end) this.#keep(chunk.subarray(from, end))
  }

  /** Notes events that were read without this scanner, each with one line of content. */
  passed(events: number): void {
    this.#fields += events
  }

  #emit(bytes: Uint8Array, start: number, end: number, nextInChunk: number): void {
    const bare = end > start && bytes[end - 1] === cr ? end - 1 : end
    this.#eventOpen = bare > start
    this.#count(bare > start && bytes[start] !== colon, bare === start)
    this.#sink.line(bytes, start, bare, nextInChunk)
  }

  #count(isField: boolean, isBlank: boolean): void {
    if (isField) this.#fields++
    else if (!(isBlank && this.#hasField) && ++this.#emptyLines > emptyLinesMax && this.#emptyLines > this.#fields * emptyLinesPerField)
      throw new EmptyLinesError()
    if (isField || isBlank) this.#hasField = isField
  }

  #emitJoined(chunk: Uint8Array, from: number, at: number): void {
    this.#keep(chunk.subarray(from, at))
    const line = this.#isOverlong ? overlongLine : this.#line.take()
    this.#isOverlong = false
    this.#emit(line, 0, line.length, at + 1)
  }

  #keep(part: Uint8Array): void {
    if (this.#isOverlong) {
      this.#sink.overlong?.(part)
      return
    }
    if (part.length === 0) return
    this.#line.append(part)
    if (this.#line.length - (part[part.length - 1] === cr ? 1 : 0) <= this.#maxBytes) return
    this.#isOverlong = true
    this.#sink.overlong?.(this.#line.take())
  }
}

const blankLine = Buffer.from('\n\n')

/** Returns the offset after the first event that ends at or after `at`, or the length of the chunk when none ends in it. */
export function eventEndIn(chunk: Uint8Array, at: number): number {
  const bytes = Buffer.isBuffer(chunk) ? chunk : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
  const found = bytes.indexOf(blankLine, at)
  return found === -1 ? chunk.length : found + blankLine.length
}

/** Returns the length without a CR at the end. That CR belongs to the line end, so a line has the same length for any chunking. */
function bareLength(bytes: Uint8Array, start: number, end: number): number {
  return end > start && bytes[end - 1] === cr ? end - 1 - start : end - start
}
