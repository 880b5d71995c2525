/** Functions that walk over the bytes of JSON without decoding them. */

/** Returns the offset of the closing quote of a string whose text begins at `from`, or `end`. */
export function stringEnd(bytes: Uint8Array, from: number, end: number): number {
  let at = from
  while (at < end) {
    const byte = bytes[at]
    if (byte === 34) return at
    at += byte === 92 ? 2 : 1
  }
  return end
}

const backslash = 92
/** The bytes of the longest escape, `\u0000`, and of the others. */
const unicodeEscapeBytes = 6
const escapeBytes = 2
/** Most bytes of a character in UTF-8 after its first one. */
const followersMax = 3

/**
 * Returns the first offset from `at` on where the text of a string can be cut: between two characters, and not within an escape. The text before `from` ends
 * at such an offset too. Text that is not JSON may be cut anywhere, because at least one of its parts is not JSON either.
 */
export function textCut(bytes: Uint8Array, from: number, at: number): number {
  const slash = bytes.subarray(Math.max(from, at - unicodeEscapeBytes + 1), at).lastIndexOf(backslash)
  let cut = at
  if (slash !== -1) {
    const place = Math.max(from, at - unicodeEscapeBytes + 1) + slash
    let runFrom = place
    while (runFrom > from && bytes[runFrom - 1] === backslash) runFrom--
    const isEscape = (place - runFrom) % 2 === 0
    if (isEscape) cut = Math.max(cut, place + (bytes[place + 1] === 117 ? unicodeEscapeBytes : escapeBytes))
  }
  for (let followers = 0; followers < followersMax && ((bytes[cut] ?? 0) & 0xc0) === 0x80; followers++) cut++
  return Math.min(cut, bytes.length)
}

/** Returns the offset of the next byte that is not white space, or `end`. */
export function skipWhite(bytes: Uint8Array, from: number, end: number): number {
  let at = from
  while (at < end && (bytes[at] === 32 || bytes[at] === 10 || bytes[at] === 13 || bytes[at] === 9)) at++
  return at
}

/** True if `bytes[from, to)` are the bytes of the word. */
export function isWordAt(bytes: Uint8Array, from: number, to: number, word: Uint8Array): boolean {
  if (to - from !== word.length) return false
  for (let index = 0; index < word.length; index++) if (bytes[from + index] !== word[index]) return false
  return true
}

/**
 * The first bytes of a string are read one by one, up to this number. After that a native search begins, because starting a search costs as much as reading
 * this many bytes.
 */
const stringWalkBytes = 48

/**
 * Skips strings of JSON, with native searches over long parts. The walk can stop inside a string and continue there later, so a string of any length can be
 * skipped in pieces.
 */
export class StringWalk {
  /** True: the walk stopped inside a string. */
  isInString = false
  /** The number of escaping backslashes so far. */
  escapes = 0
  readonly #bytes: Uint8Array
  readonly #limit: number
  #nextQuote = -1
  #nextSlash = -1

  /** `limit`: the offset after the JSON in `bytes`. */
  constructor(bytes: Uint8Array, limit: number) {
    this.#bytes = bytes
    this.#limit = limit
  }

  /** Returns the offset after the closing quote of the string that contains `from`, or about `end` if the string is longer. */
  to(from: number, end: number): number {
    const bytes = this.#bytes
    const limit = this.#limit
    let at = from
    let escapes = 0
    this.isInString = true
    while (at < end) {
      const stop = Math.min(at + stringWalkBytes, limit)
      while (at < stop) {
        const byte = bytes[at] as number
        if (byte === 34) {
          this.isInString = false
          this.escapes += escapes
          return at + 1
        }
        if (byte === 92) {
          escapes++
          at++
        }
        at++
      }
      if (at < limit) at = this.#jump(at)
    }
    this.escapes += escapes
    return at
  }

  /** Returns the offset of the next quote or backslash. A found offset is remembered, so that no byte is searched twice. */
  #jump(at: number): number {
    if (this.#nextQuote < at) this.#nextQuote = found(this.#bytes.indexOf(34, at))
    if (this.#nextSlash < at) this.#nextSlash = found(this.#bytes.indexOf(92, at))
    return Math.min(this.#nextQuote, this.#nextSlash, this.#limit)
  }
}

const found = (offset: number): number => (offset === -1 ? Number.MAX_SAFE_INTEGER : offset)
