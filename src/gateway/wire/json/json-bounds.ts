import { parsedObject } from '../../../platform/values/json.ts'

/** What JSON of others may be like before it is parsed: parsing takes time and memory by the number of values, which a few bytes may have many of. */

/** Text up to this length is parsed as it is: whatever it holds, that takes no time. */
const anyJsonMaxBytes = 64 * 1024
/** Deepest nesting. */
const depthMax = 128
/** Most objects, lists and members of objects. Numbers and texts in lists are not counted: a vector has thousands, and they are cheap. */
const piecesMax = 100_000

const quote = 34
const backslash = 92

/** The object that the bytes hold. Null for bytes that are no JSON, hold something else, are nested too deeply or have too many pieces. */
export const objectOfBytes = (bytes: Buffer, mostPieces?: number): Record<string, unknown> | null =>
  isBoundedJson(bytes, 0, bytes.length, mostPieces) ? parsedObject(bytes.toString('utf8')) : null

/** False: the JSON in `bytes[start, end)` is nested too deeply or has too many pieces to be parsed. Text of strings is passed over. */
export function isBoundedJson(bytes: Uint8Array, start: number, end: number, mostPieces = piecesMax): boolean {
  if (end - start <= anyJsonMaxBytes) return true
  let depth = 0
  let pieces = 0
  for (let at = start; at < end; at++) {
    const byte = bytes[at]
    if (byte === quote) at = closingQuote(bytes, at + 1, end)
    else if (byte === 123 || byte === 91) {
      depth++
      pieces++
    } else if (byte === 125 || byte === 93) depth--
    else if (byte === 58) pieces++
    if (depth > depthMax || pieces > mostPieces) return false
  }
  return true
}

/** Strings may be long: a picture is one. */
function closingQuote(bytes: Uint8Array, from: number, end: number): number {
  let at = from
  for (;;) {
    at = bytes.indexOf(quote, at)
    if (at === -1 || at >= end) return end
    let slashes = 0
    while (at - 1 - slashes >= from && bytes[at - 1 - slashes] === backslash) slashes++
    if (slashes % 2 === 0) return at
    at++
  }
}
