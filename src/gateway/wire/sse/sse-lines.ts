import { GrowingBytes } from './growing-bytes.ts'

/** Takes the lines of an event stream, without their line ends. */
export interface LineSink {
  /**
   * One line: `bytes[start, end)`; an empty one ends the event. The bytes are only lent. `nextInChunk` is the offset after the line end in the pushed
   * chunk.
   */
  line(bytes: Uint8Array, start: number, end: number, nextInChunk: number): void
  /** Bytes of a line that is too long to be put together, as they come, for those who pass all bytes on; its `line` is then `overlongLine`. */
  overlong?(part: Uint8Array): void
}

/** Replaces a line that was too long: a comment, which has no effect. */
export const overlongLine: Uint8Array = Buffer.from(':')

/** Longest line that is put together over several chunks; of a longer one only the length is known. */
export const lineMaxBytes = 8 * 1024 * 1024

const lf = 10
const cr = 13

/**
 * Splits the bytes of an event stream into lines, with any chunking, without decoding or copying a line that is in one chunk. Lines end in LF or CRLF. A
 * lone CR, which the format allows and no known provider sends, is not a line end here: readers of streams of others put `LineEnds` before it. Decision
 * 0377 says why.
 */
export class SseLineScanner {
  readonly #sink: LineSink
  readonly #maxBytes: number
  /** The line under way. */
  readonly #line = new GrowingBytes()
  #isOverlong = false
  #eventOpen = false

  constructor(sink: LineSink, maxBytes = lineMaxBytes) {
    this.#sink = sink
    this.#maxBytes = maxBytes
  }

  /** True when the bytes so far end exactly between two events. */
  get atBoundary(): boolean {
    return !this.#eventOpen && !this.isInLine
  }

  /** True when a line has begun and not ended. */
  get isInLine(): boolean {
    return this.#isOverlong || this.#line.length > 0
  }

  /** Bytes that are kept of a line that has begun and not ended. */
  get heldBytes(): number {
    return this.#line.roomBytes
  }

  push(chunk: Uint8Array): void {
    let from = 0
    for (;;) {
      const at = chunk.indexOf(lf, from)
      if (at === -1) break
      if (this.isInLine || bareLength(chunk, from, at) > this.#maxBytes) this.#emitJoined(chunk, from, at)
      else this.#emit(chunk, from, at, at + 1)
      from = at + 1
    }
    if (from < chunk.length) this.#keep(chunk.subarray(from))
  }

  #emit(bytes: Uint8Array, start: number, end: number, nextInChunk: number): void {
    const bare = end > start && bytes[end - 1] === cr ? end - 1 : end
    this.#eventOpen = bare > start
    this.#sink.line(bytes, start, bare, nextInChunk)
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

/** Length without a CR at the end: that one belongs to the line end, so a line has one length over any chunking. */
function bareLength(bytes: Uint8Array, start: number, end: number): number {
  return end > start && bytes[end - 1] === cr ? end - 1 - start : end - start
}
