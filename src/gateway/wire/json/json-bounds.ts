import { parsedObject } from '../../../platform/values/json.ts'
import { pieceBytes, pieceTurn } from './json-body.ts'

/** What JSON of others may be like before it is parsed: parsing takes time and memory by the number of values, which a few bytes may have many of. */

/** Text up to this length is parsed as it is: whatever it holds, that takes no time. */
const anyJsonMaxBytes = 64 * 1024
/** Deepest nesting. */
const depthMax = 128
/** Most objects, lists and members of objects. */
const piecesMax = 100_000

const quote = 34
const backslash = 92

/** Bounds of JSON of others. */
export interface JsonOfOthersBounds {
  /** Most objects, lists and members of objects. */
  readonly piecesMax: number
  /** Most values, which are those and the items of lists. */
  readonly valuesMax: number
}

/** JSON of providers that the operator has chosen. Items of lists are not counted: a vector has thousands, and they are cheap. */
const operatorBounds: JsonOfOthersBounds = { piecesMax, valuesMax: Number.POSITIVE_INFINITY }
/** A whole reply of a server that somebody has registered. It may be all commas: 250,000 numbers take some 50 ms. */
export const ownReplyBounds: JsonOfOthersBounds = { piecesMax, valuesMax: 250_000 }

/** The object that the bytes hold. Null for bytes that are no JSON, hold something else, are nested too deeply or have too many pieces. */
export const objectOfBytes = (bytes: Buffer, mostPieces = piecesMax): Record<string, unknown> | null =>
  isBoundedJson(bytes, 0, bytes.length, { ...operatorBounds, piecesMax: mostPieces }) ? parsedObject(bytes.toString('utf8')) : null

/** False: the JSON in `bytes[start, end)` is nested too deeply or has too many pieces to be parsed. Text of strings is passed over. */
export function isBoundedJson(bytes: Uint8Array, start: number, end: number, bounds = operatorBounds): boolean {
  return end - start <= anyJsonMaxBytes || new BoundsScan(bytes, start, end, bounds).to(end) !== 'beyond'
}

/** The same for all of the bytes, with their bounds. Long ones are looked at in pieces, between which the event loop turns. */
export async function isBoundedInTurns(bytes: Uint8Array, bounds: JsonOfOthersBounds): Promise<boolean> {
  if (bytes.length <= anyJsonMaxBytes) return true
  const scan = new BoundsScan(bytes, 0, bytes.length, bounds)
  let seen = scan.to(pieceBytes)
  while (seen === 'more') {
    await pieceTurn()
    seen = scan.to(scan.at + pieceBytes)
  }
  return seen === 'within'
}

/** A scan of the bytes `[start, end)` for the bounds of JSON. It can be done in pieces. */
class BoundsScan {
  readonly #bytes: Uint8Array
  readonly #end: number
  readonly #bounds: JsonOfOthersBounds
  #at: number
  #depth = 0
  #pieces = 0
  #values = 1

  constructor(bytes: Uint8Array, start: number, end: number, bounds: JsonOfOthersBounds) {
    this.#bytes = bytes
    this.#end = end
    this.#bounds = bounds
    this.#at = start
  }

  /** Bytes that are seen. */
  get at(): number {
    return this.#at
  }

  /** Goes on to about that offset: a string is passed over whole. */
  to(offset: number): 'more' | 'within' | 'beyond' {
    const bytes = this.#bytes
    const stop = Math.min(offset, this.#end)
    const { piecesMax: mostPieces, valuesMax } = this.#bounds
    let at = this.#at
    let depth = this.#depth
    let pieces = this.#pieces
    let values = this.#values
    for (; at < stop; at++) {
      const byte = bytes[at]
      if (byte === quote) at = closingQuote(bytes, at + 1, this.#end)
      else if (byte === 44) values++
      else if (byte === 123 || byte === 91) {
        depth++
        pieces++
        values++
      } else if (byte === 125 || byte === 93) depth--
      else if (byte === 58) pieces++
      if (depth > depthMax || pieces > mostPieces || values > valuesMax) return 'beyond'
    }
    this.#at = at
    this.#depth = depth
    this.#pieces = pieces
    this.#values = values
    return at >= this.#end ? 'within' : 'more'
  }
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
