import { isAscii } from 'node:buffer'
import { hashSeed } from '../../../platform/values/hash-seed.ts'
import { parsedObject } from '../../../platform/values/json.ts'
import { pieceBytes, pieceTurn } from './json-body.ts'
import { StringWalk } from './json-bytes.ts'

/**
 * Checks the bounds of JSON from other servers before it is parsed. The time and memory of parsing grow with the number of values, and short JSON can
 * contain many values.
 */

/** Text up to this length is parsed without a check. Parsing it takes little time, whatever it contains. */
export const anyJsonMaxBytes = 64 * 1024
/** Deepest nesting. */
const depthMax = 128
/** Maximum number of objects, lists and members of objects. */
const piecesMax = 100_000

/**
 * Maximum number of escapes in all strings together. A parser needs as much time for an escape as for fifty plain characters. Mostly line breaks are
 * escaped, and no model writes this many lines.
 */
const escapesMax = 4_000_000
/**
 * Maximum number of bytes in the sections that contain characters other than ASCII, which cost three times as much. Pictures are ASCII, and no model writes
 * this much text.
 */
const otherBytesMax = 16 * 1024 * 1024
/** A scan that is not divided into turns checks the numbers of shapes, escapes and other than ASCII bytes after every this many bytes. */
const lookBytes = 1024 * 1024

/** Bounds of JSON from other servers. Decision 0468 gives the reasons for the numbers. */
export interface JsonOfOthersBounds {
  /** Maximum number of objects, lists and members of objects. */
  readonly piecesMax: number
  /** Maximum number of values. These are the objects, the lists, their members and their items. */
  readonly valuesMax: number
  /** Maximum number of shapes of objects. A shape is the list of an object's member names in their order. */
  readonly shapesMax: number
}

/** Maximum number of shapes. No honest reply comes near this number. An object that is used as a map has one shape for each of its keys. */
const shapesMax = 20_000
/**
 * Bounds of an event from a provider that the operator chose. Many values are allowed, because an embedding vector has thousands of items that are cheap to
 * parse.
 */
export const operatorBounds: JsonOfOthersBounds = { piecesMax, valuesMax: 1_000_000, shapesMax }
/** Bounds of a whole reply from a provider that the operator chose. They allow 18,000 tokens with five alternatives each and their probabilities. */
export const operatorReplyBounds: JsonOfOthersBounds = { piecesMax: 600_000, valuesMax: 1_000_000, shapesMax }
/** Bounds of a whole reply from an own server. A reply of 250,000 numbers and nothing else takes about 50 ms to parse. */
export const ownReplyBounds: JsonOfOthersBounds = { piecesMax, valuesMax: 250_000, shapesMax }

/**
 * Parses bytes that are a JSON object. Returns null if the bytes are not JSON, are something other than an object, are nested too deeply, or have too many
 * pieces.
 */
export const objectOfBytes = (bytes: Buffer, mostPieces = piecesMax): Record<string, unknown> | null =>
  isBoundedJson(bytes, 0, bytes.length, { ...operatorBounds, piecesMax: mostPieces }) ? parsedObject(bytes.toString('utf8')) : null

/** Returns false if the JSON in `bytes[start, end)` is beyond a bound and must not be parsed. The text of strings is skipped. */
export function isBoundedJson(bytes: Uint8Array, start: number, end: number, bounds = operatorBounds): boolean {
  if (end - start <= anyJsonMaxBytes) return true
  const scan = new BoundsScan(bytes, start, end, bounds)
  let seen = scan.to(start + lookBytes)
  while (seen === 'more') seen = scan.to(scan.at + lookBytes)
  return seen === 'within'
}

/** Checks all of the bytes like `isBoundedJson`. Long JSON is scanned in pieces, and the event loop runs between the pieces. */
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

/** Scans the bytes `[start, end)` for the bounds of JSON. The scan can be done in pieces. */
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
  /** The start and end offsets of the last string's text. A string before a colon is a name. */
  #textFrom = 0
  #textTo = 0

  constructor(bytes: Uint8Array, start: number, end: number, bounds: JsonOfOthersBounds) {
    this.#bytes = bytes
    this.#end = end
    this.#bounds = bounds
    this.#at = start
    this.#strings = new StringWalk(bytes, end)
  }

  /** The offset up to which the bytes are scanned. */
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

/** The bytes of a name that the hash includes. Longer names are also distinguished by their length. */
const nameMaxBytes = 64

const stretchBytes = 64 * 1024

/** Returns the number of bytes in the sections of `bytes[from, to)` that contain characters other than ASCII. */
function otherBytesIn(bytes: Uint8Array, from: number, to: number): number {
  let count = 0
  for (let at = from; at < to; at += stretchBytes) {
    const end = Math.min(to, at + stretchBytes)
    if (!isAscii(bytes.subarray(at, end))) count += end - at
  }
  return count
}

/**
 * Counts the shapes of objects. An object with the names a, b, c has the shapes "a", "a b" and "a b c", and each new shape adds one. A parser creates a
 * description of each new shape, which costs ten times as much as a member of a known shape. The count is slightly low if two shapes have the same hash. An
 * attacker cannot choose such shapes, because the seed is random.
 */
class ShapeCount {
  readonly #seen = new Set<number>()
  /** The hash of the names so far, for the open object at each depth. */
  readonly #byDepth: number[] = []

  get shapes(): number {
    return this.#seen.size
  }

  /** Notes that an object begins at that depth. */
  open(depth: number): void {
    this.#byDepth[depth] = hashSeed
  }

  /** Notes that the object at that depth has a member with the name in `bytes[from, to)`. */
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
