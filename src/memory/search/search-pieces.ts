/** Divides the bytes of an object into lines and pieces of lines. It decodes only what it returns. Decision 0652 says why. */
import { isUtf8 } from 'node:buffer'

/** A line, or a part of a very long line. */
export interface Piece {
  /** Counted from 1. */
  readonly line: number
  readonly text: string
  readonly isLineEnd: boolean
  /** Where this line begins, in bytes of the object. */
  readonly start: number
  /** Where the next line begins, in bytes of the object. */
  readonly nextStart: number
  /** Where the next piece of this line begins. */
  readonly nextOffset: number
}

/** A place in an object: the number of finished lines, where the next line begins, and the number of finished bytes in that line. */
export interface Place {
  readonly line: number
  /** In bytes of the object. Without it, a search would have to find all earlier lines again. */
  readonly start: number
  readonly offset: number
}

export const firstPlace: Place = { line: 0, start: 0, offset: 0 }

/** The part of a piece that the next piece searches again. */
const overlap = 1 / 8
/** Maximum number of bytes of UTF-8 for one UTF-16 code unit. */
const unitBytesMax = 3
/** The check of this many bytes takes a millisecond or two. */
const checkedBytes = 1024 * 1024
/** The beginning of an object that must not contain a zero byte, because text contains none. */
const probedBytes = 8192
const [lineFeed, carriageReturn] = [10, 13]

/** Checks whether an object is text in UTF-8, one slice with each step. Returns the result at the end. */
export function* checkText(bytes: Buffer): Generator<void, boolean> {
  if (bytes.subarray(0, probedBytes).includes(0)) return false
  for (let at = 0; at < bytes.length; ) {
    const end = characterStart(bytes, Math.min(bytes.length, at + checkedBytes))
    if (end <= at || !isUtf8(bytes.subarray(at, end))) return false
    at = end
    yield
  }
  return true
}

/** Returns the place of the character to which a byte belongs. Returns the place itself behind the end, and for bytes that are not UTF-8. */
function characterStart(bytes: Buffer, at: number): number {
  for (let back = 0; back <= unitBytesMax; back++) {
    const byte = bytes[at - back]
    if (byte === undefined || (byte & 0xc0) !== 0x80) return at - back
  }
  return at
}

/** Returns the pieces of an object after `from`. A piece has at most `pieceChars` characters. */
export function* piecesOf(bytes: Buffer, pieceChars: number, from: Place): Generator<Piece> {
  const stepChars = Math.ceil(pieceChars * (1 - overlap))
  let { line, offset } = from
  for (let start = from.start === 0 ? markLength(bytes) : from.start; start < bytes.length; ) {
    const found = bytes.indexOf(lineFeed, start)
    const next = found < 0 ? bytes.length : found
    const end = next > start && bytes[next - 1] === carriageReturn ? next - 1 : next
    line++
    do {
      const at = start + offset
      const { text, isAll } = beginningOf(bytes, at, end, pieceChars)
      const step = isAll ? 0 : Buffer.byteLength(withoutHalf(text.slice(0, stepChars)))
      yield { line, text, isLineEnd: isAll, start, nextStart: next + 1, nextOffset: offset + step }
      offset = isAll ? end - start : offset + step
    } while (start + offset < end)
    offset = 0
    start = next + 1
  }
}

/** Returns at most `chars` characters of the bytes from `at` to `end`, and whether these are all. */
function beginningOf(bytes: Buffer, at: number, end: number, chars: number): { text: string; isAll: boolean } {
  // A character that this cuts is behind the last one that is returned.
  const enough = Math.min(end, at + (chars + 1) * unitBytesMax)
  const text = at < end ? bytes.toString('utf8', at, enough) : ''
  return { text: text.slice(0, chars), isAll: enough >= end && text.length <= chars }
}

/** Returns a text without the first half of a character at its end. */
const withoutHalf = (text: string): string => (text.length > 1 && /[\ud800-\udbff]$/.test(text) ? text.slice(0, -1) : text)
/** Returns the number of bytes of the byte order mark at the beginning. It belongs to no line. */
const markLength = (bytes: Buffer): number => (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0)
