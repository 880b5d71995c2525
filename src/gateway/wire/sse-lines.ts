/** Takes the lines of an event stream, without their line ends. */
export interface LineSink {
  /**
   * One line: `bytes[start, end)`; an empty one ends the event. The bytes are only lent. `nextInChunk` is the offset behind the line
   * end in the chunk that was pushed.
   */
  line(bytes: Uint8Array, start: number, end: number, nextInChunk: number): void
  /** Bytes of a line that is too long to be put together, as they come, for those who pass all bytes on; its `line` is then `overlongLine`. */
  overlong?(part: Uint8Array): void
}

/** What stands for a line that was too long: a comment, which says nothing. */
export const overlongLine: Uint8Array = Buffer.from(':')

/** Longest line that is put together over several chunks; of a longer one only the length is known. */
export const lineMaxBytes = 8 * 1024 * 1024

const lf = 10
const cr = 13

/**
 * Cuts the bytes of an event stream into lines, over any chunking, without decoding or copying a line that lies in one chunk. Lines
 * end in LF or CRLF; a lone CR, which the format allows and no provider sends, is not a line end.
 */
export class SseLineScanner {
  readonly #sink: LineSink
  #parts: Uint8Array[] = []
  #partBytes = 0
  #eventOpen = false

  constructor(sink: LineSink) {
    this.#sink = sink
  }

  /** True when the bytes so far end exactly between two events. */
  get atBoundary(): boolean {
    return !this.#eventOpen && this.#partBytes === 0
  }

  /** True when a line has begun and not ended. */
  get isInLine(): boolean {
    return this.#partBytes > 0
  }

  push(chunk: Uint8Array): void {
    let from = 0
    for (;;) {
      const at = chunk.indexOf(lf, from)
      if (at === -1) break
      if (this.#partBytes === 0) this.#emit(chunk, from, at, at + 1)
      else this.#emitJoined(chunk, from, at)
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
    const line = this.#partBytes <= lineMaxBytes ? Buffer.concat(this.#parts) : overlongLine
    this.#parts = []
    this.#partBytes = 0
    this.#emit(line, 0, line.length, at + 1)
  }

  #keep(part: Uint8Array): void {
    this.#partBytes += part.length
    this.#parts.push(part)
    if (this.#partBytes <= lineMaxBytes) return
    const parts = this.#parts
    this.#parts = []
    for (const each of parts) this.#sink.overlong?.(each)
  }
}
