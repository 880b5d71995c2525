import { isAscii } from 'node:buffer'
import { hashSeed } from '../../../platform/values/hash-seed.ts'
import { parsedObject } from '../../../platform/values/json.ts'
import { pieceBytes, pieceTurn } from './json-body.ts'
import { StringWalk } from './json-bytes.ts'

/** What JSON of others may be like before it is parsed: parsing takes time and memory by the number of values, which a few bytes may have many of. */

/** Text up to this length is parsed as it is: whatever it holds, that takes no time. */
export const anyJsonMaxBytes = 64 * 1024
/** Deepest nesting. */
const depthMax = 128
/** Most objects, lists and members of objects. */
const piecesMax = 100_000

/** Most escapes in all strings together, of which each takes a parser as long as fifty plain characters. No model writes as many lines. */
const escapesMax = 4_000_000
/** Most bytes of stretches with characters that are not ASCII, which cost three times as much. Pictures are ASCII, and no model writes as much text. */
const otherBytesMax = 16 * 1024 * 1024
/** JSON that is looked at in one turn is refused within so many bytes behind a bound. */
const lookBytes = 1024 * 1024

/** Bounds of JSON of others. Decision 0468 says why they are what they are. */
export interface JsonOfOthersBounds {
  /** Most objects, lists and members of objects. */
  readonly piecesMax: number
  /** Most values, which are those and the items of lists. */
  readonly valuesMax: number
  /** Most different rows of names of objects. */
  readonly shapesMax: number
}

/** No honest reply comes near them: a map by some key has a shape for each of its keys. */
const shapesMax = 20_000
/** An event of providers that the operator has chosen: a vector has thousands of items, and they are cheap. */
const operatorBounds: JsonOfOthersBounds = { piecesMax, valuesMax: 1_000_000, shapesMax }
/** A whole reply of theirs: five alternatives for each of 18,000 tokens, with their probabilities. */
export const operatorReplyBounds: JsonOfOthersBounds = { piecesMax: 600_000, valuesMax: 1_000_000, shapesMax }
/** A whole reply of a server that somebody has registered. It may be all commas: 250,000 numbers take some 50 ms. */
export const ownReplyBounds: JsonOfOthersBounds = { piecesMax, valuesMax: 250_000, shapesMax }

/** The object that the bytes hold. Null for bytes that are no JSON, hold something else, are nested too deeply or have too many pieces. */
export const objectOfBytes = (bytes: Buffer, mostPieces = piecesMax): Record<string, unknown> | null =>
  isBoundedJson(bytes, 0, bytes.length, { ...operatorBounds, piecesMax: mostPieces }) ? parsedObject(bytes.toString('utf8')) : null

/** False: the JSON in `bytes[start, end)` is nested too deeply or has too many pieces to be parsed. Text of strings is passed over. */
export function isBoundedJson(bytes: Uint8Array, start: number, end: number, bounds = operatorBounds): boolean {
  if (end - start <= anyJsonMaxBytes) return true
  const scan = new BoundsScan(bytes, start, end, bounds)
  let seen = scan.to(start + lookBytes)
  while (seen === 'more') seen = scan.to(scan.at + lookBytes)
  return seen === 'within'
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
  readonly #strings: StringWalk
  readonly #shapes = new ShapeCount()
  #at: number
  #depth = 0
  #pieces = 0
  #values = 1
  #otherBytes = 0
  /** Where the text of the last string begins and ends: in front of a colon it is a name. */
  #textFrom = 0
  #textTo = 0

  constructor(bytes: Uint8Array, start: number, end: number, bounds: JsonOfOthersBounds) {
    this.#bytes = bytes
    this.#end = end
    this.#bounds = bounds
    this.#at = start
    this.#strings = new StringWalk(bytes, end)
  }

  /** Bytes that are seen. */
  get at(): number {
    return this.#at
  }

  /** Continues to about that offset. */
  to(offset: number): 'more' | 'within' | 'beyond' {
    const bytes = this.#bytes
    const strings = this.#strings
    const stop = Math.min(offset, this.#end)
    const { piecesMax: mostPieces, valuesMax } = this.#bounds
    let at = this.#at
    let depth = this.#depth
    let pieces = this.#pieces
    let values = this.#values
    if (strings.isInString) at = this.#stringEnd(at, stop)
    while (at < stop) {
      const byte = bytes[at++]
      if (byte === 34) {
        this.#textFrom = at
        at = this.#stringEnd(at, stop)
        continue
      }
      if (byte === 44) values++
      else if (byte === 123 || byte === 91) {
        depth++
        pieces++
        values++
        if (byte === 123) this.#shapes.open(depth)
      } else if (byte === 125 || byte === 93) depth--
      else if (byte === 58) {
        pieces++
        this.#shapes.add(depth, bytes, this.#textFrom, this.#textTo)
      } else continue
      if (depth > depthMax || pieces > mostPieces || values > valuesMax) return 'beyond'
    }
    this.#otherBytes += otherBytesIn(bytes, this.#at, at)
    this.#at = at
    this.#depth = depth
    this.#pieces = pieces
    this.#values = values
    if (this.#shapes.shapes > this.#bounds.shapesMax || strings.escapes > escapesMax || this.#otherBytes > otherBytesMax) return 'beyond'
    return at >= this.#end ? 'within' : 'more'
  }

  #stringEnd(from: number, stop: number): number {
    const at = this.#strings.to(from, stop)
    this.#textTo = at - 1
    return at
  }
}

/** Bytes of a name that are told apart; longer ones also by their length. */
const nameMaxBytes = 64

const stretchBytes = 64 * 1024

/** Bytes of the stretches of `bytes[from, to)` that have other characters than ASCII. */
function otherBytesIn(bytes: Uint8Array, from: number, to: number): number {
  let count = 0
  for (let at = from; at < to; at += stretchBytes) {
    const end = Math.min(to, at + stretchBytes)
    if (!isAscii(bytes.subarray(at, end))) count += end - at
  }
  return count
}

/**
 * Counts the shapes of objects: the different rows of names with which objects begin. A parser makes a description of each, which costs it ten times as much as a
 * member of a known one. The count is a little low when two rows have the same hash. Nobody can choose such rows, because the seed is random.
 */
class ShapeCount {
  readonly #seen = new Set<number>()
  /** The hash of the names so far, for the object that is open at each depth. */
  readonly #byDepth: number[] = []

  get shapes(): number {
    return this.#seen.size
  }

  /** An object begins at that depth. */
  open(depth: number): void {
    this.#byDepth[depth] = hashSeed
  }

  /** The object at that depth has a member with the name in `bytes[from, to)`. */
  add(depth: number, bytes: Uint8Array, from: number, to: number): void {
    let hash = Math.imul((this.#byDepth[depth] ?? hashSeed) ^ (to - from), prime)
    const end = Math.min(to, from + nameMaxBytes)
    for (let at = from; at < end; at++) {
      hash = Math.imul(hash ^ (bytes[at] as number), prime)
      hash ^= hash >>> 15
    }
    this.#byDepth[depth] = hash
    this.#seen.add(hash)
  }
}

const prime = 0x01000193
