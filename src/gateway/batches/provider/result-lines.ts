/**
 * Reads lines of results as they arrive and drops what says nothing about usage: lists of numbers, the rest of long texts, and what is nested deeply. A line with
 * the embeddings of a thousand texts has 60 MB, and parsing it whole would stop all other callers for half a second.
 */
import { BodyPieces } from '../../../platform/loop/body-pieces.ts'

const [newline, quote, backslash, comma, openBrace, closeBrace, openBracket, closeBracket] = [10, 34, 92, 44, 123, 125, 91, 93] as const
/** The usage of a reply is at depth 4, and its details are at depth 6 at most. */
const depthMost = 7
/** The bytes of a text that are kept. Names of members, kinds and states are far shorter. */
const textMaxBytes = 512
/** The longest escape in a text is `\\u0000`: within these bytes after a backslash, a text is not cut. */
const escapeBytes = 6

/** Returns each line that has something in it, without what was dropped. Null stands for a line of which more than `maxBytes` are left. */
export async function* resultLines(pieces: AsyncIterable<Uint8Array>, maxBytes: number): AsyncGenerator<Buffer | null> {
  const lines = new ResultLines(maxBytes)
  for await (const piece of pieces) yield* lines.linesIn(piece)
  yield* lines.end()
}

class ResultLines {
  readonly #maxBytes: number
  #kept = new BodyPieces()
  #isTooLong = false
  #depth = 0
  #isInText = false
  #textBytes = 0
  /** True when the rest of the present text is dropped. */
  #isCut = false
  /** Bytes since the last backslash of a text. */
  #sinceEscape = 0
  /** True after a backslash that is not itself escaped. */
  #isEscaped = false
  /** True from the start of a list on, while only numbers have come. */
  #isInNumbers = false

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  *linesIn(piece: Uint8Array): Generator<Buffer | null> {
    // What is kept of a piece is at most as long as the piece.
    let out = Buffer.allocUnsafe(piece.length)
    let length = 0
    for (let at = 0; at < piece.length; at++) {
      const byte = piece[at] as number
      if (byte === newline) {
        this.#keep(out.subarray(0, length))
        out = out.subarray(length)
        length = 0
        const line = this.#line()
        if (line !== undefined) yield line
      } else if (this.#isInText ? this.#keepsOfText(byte) : this.#keepsOutside(byte)) out[length++] = byte
    }
    this.#keep(out.subarray(0, length))
  }

  *end(): Generator<Buffer | null> {
    const line = this.#line()
    if (line !== undefined) yield line
  }

  #keep(bytes: Buffer): void {
    if (this.#isTooLong) return
    this.#kept.add(bytes)
    if (this.#kept.bytes <= this.#maxBytes) return
    this.#isTooLong = true
    this.#kept.drop()
  }

  /** Ends a line. Undefined when nothing is in it. */
  #line(): Buffer | null | undefined {
    const bytes = this.#kept.joined()
    const line = this.#isTooLong ? null : isBlank(bytes) ? undefined : bytes
    this.#kept = new BodyPieces()
    this.#depth = 0
    this.#isTooLong = this.#isInText = this.#isEscaped = this.#isInNumbers = false
    return line
  }

  #keepsOfText(byte: number): boolean {
    const isDeep = this.#depth > depthMost
    if (byte === quote && !this.#isEscaped) {
      this.#isInText = false
      return !isDeep
    }
    this.#isEscaped = byte === backslash && !this.#isEscaped
    this.#sinceEscape = byte === backslash ? 0 : this.#sinceEscape + 1
    // A text is cut behind whole escapes only. An escape that begins behind the bound is dropped as a whole.
    if (this.#textBytes >= textMaxBytes && (this.#isCut || (this.#sinceEscape > escapeBytes && byte !== backslash))) this.#isCut = true
    this.#textBytes++
    return !isDeep && !this.#isCut
  }

  #keepsOutside(byte: number): boolean {
    if (this.#isInNumbers && isOfNumbers(byte)) return false
    this.#isInNumbers = false
    switch (byte) {
      case quote:
        this.#isInText = true
        this.#isCut = this.#isEscaped = false
        this.#textBytes = 0
        this.#sinceEscape = escapeBytes + 1
        return this.#depth <= depthMost
      case openBrace:
      case openBracket:
        this.#depth++
        this.#isInNumbers = byte === openBracket
        return this.#depth - 1 <= depthMost
      case closeBrace:
      case closeBracket:
        this.#depth--
        return this.#depth <= depthMost
      default:
        return this.#depth <= depthMost
    }
  }
}

/** Returns true for the bytes of numbers, and for what is between them. */
const isOfNumbers = (byte: number): boolean =>
  (byte >= 48 && byte <= 57) || byte === comma || byte === 45 || byte === 43 || byte === 46 || byte === 101 || byte === 69 || isWhite(byte)

const isWhite = (byte: number): boolean => byte === 32 || byte === 13 || byte === 9

const isBlank = (bytes: Buffer): boolean => bytes.every(isWhite)
