/** Walking over the bytes of JSON without decoding them. */

/** Offset of the closing quote of a string whose text begins at `from`, or `end`. */
export function stringEnd(bytes: Uint8Array, from: number, end: number): number {
  let at = from
  while (at < end) {
    const byte = bytes[at]
    if (byte === 34) return at
    at += byte === 92 ? 2 : 1
  }
  return end
}

/** Offset of the next byte that is no white space, or `end`. */
export function skipWhite(bytes: Uint8Array, from: number, end: number): number {
  let at = from
  while (at < end && (bytes[at] === 32 || bytes[at] === 10 || bytes[at] === 13 || bytes[at] === 9)) at++
  return at
}

/** True when `bytes[from, to)` are those of the word. */
export function isWordAt(bytes: Uint8Array, from: number, to: number, word: Uint8Array): boolean {
  if (to - from !== word.length) return false
  for (let index = 0; index < word.length; index++) if (bytes[from + index] !== word[index]) return false
  return true
}
