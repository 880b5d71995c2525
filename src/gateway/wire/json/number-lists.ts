/**
 * Removes the numbers of long lists from JSON. A reply of embeddings consists almost only of numbers, which the gateway does not read. Parsing three
 * million numbers would block the event loop for half a second, so native searches skip these lists.
 */
import { pieceBytes, pieceTurn } from './json-body.ts'
import { anyJsonMaxBytes } from './json-bounds.ts'
import { StringWalk, skipWhite } from './json-bytes.ts'

/** Lists that are shorter than this number of bytes are not emptied. */
const listLeastBytes = 64
/** After this number of emptied lists, all later lists stay unchanged. No provider accepts this many texts. */
const listsMax = 20_000
/** The most white space before the first number of a list. Providers that indent their JSON begin each line with white space. */
const whiteMaxBytes = 256

const quote = 34
const minus = 45
const zero = 48
const nine = 57
const openBracket = 91
const openBrace = 123
const closeBracket = 93

/** The JSON to parse in place of `whole`. */
export interface LeanJson {
  readonly whole: Buffer
  /** The same JSON with empty lists in place of long lists of numbers. It is `whole` itself if there are none. */
  readonly lean: Buffer
  /** Returns the offset in `whole` for an offset in `lean`. */
  offsetOf(at: number): number
}

/** Wraps JSON from which nothing is removed. */
export const asItIs = (whole: Buffer): LeanJson => ({ whole, lean: whole, offsetOf: same })

/**
 * Removes the numbers of long lists. Long JSON is scanned in pieces, and the event loop runs between the pieces. The removed numbers are not checked. Any
 * other error in the JSON is also in the result, so the parser still finds it.
 */
export function withoutNumberLists(whole: Buffer): LeanJson | Promise<LeanJson> {
  return whole.length <= anyJsonMaxBytes ? asItIs(whole) : leanInTurns(whole)
}

async function leanInTurns(whole: Buffer): Promise<LeanJson> {
  const lists = new NumberLists(whole)
  while (!lists.to(lists.at + pieceBytes)) await pieceTurn()
  return lists.lean()
}

/** Searches for long lists of numbers. The search can be done in pieces. */
class NumberLists {
  /** The offset up to which the bytes are scanned. */
  at = 0
  readonly #whole: Buffer
  readonly #strings: StringWalk
  readonly #parts: Buffer[] = []
  /** The offset in `lean` at which each part begins, and the number of bytes that were removed before it. */
  readonly #cuts: { readonly at: number; readonly left: number }[] = []
  readonly #close: NextByte
  /** Bytes that a list of numbers does not contain. */
  readonly #others: readonly NextByte[]
  #from = 0
  #kept = 0
  #left = 0

  constructor(whole: Buffer) {
    this.#whole = whole
    this.#strings = new StringWalk(whole, whole.length)
    this.#close = new NextByte(whole, closeBracket)
    this.#others = [new NextByte(whole, quote), new NextByte(whole, openBracket), new NextByte(whole, openBrace)]
  }

  /** Continues to about that offset. A list is always skipped as a whole. Returns true if everything was scanned. */
  to(offset: number): boolean {
    const whole = this.#whole
    const strings = this.#strings
    const stop = Math.min(offset, whole.length)
    let { at } = this
    if (strings.isInString) at = strings.to(at, stop)
    while (at < stop) {
      const byte = whole[at++]
      if (byte === quote) at = strings.to(at, stop)
      else if (byte === openBracket) at = this.#listEnd(at)
    }
    this.at = at
    return at >= whole.length
  }

  lean(): LeanJson {
    const whole = this.#whole
    const cuts = this.#cuts
    if (this.#parts.length === 0) return asItIs(whole)
    const lean = Buffer.concat([...this.#parts, whole.subarray(this.#from)])
    return { whole, lean, offsetOf: place => place + (cuts.findLast(cut => cut.at <= place)?.left ?? 0) }
  }

  /** Returns the end offset of the list that begins just before `start` if that list is removed; otherwise `start`. */
  #listEnd(start: number): number {
    if (this.#cuts.length >= listsMax || !isNumber(this.#whole[skipWhite(this.#whole, start, start + whiteMaxBytes)])) return start
    const close = this.#close.from(start)
    // A list that contains a text, a list or an object stays. So does a list that is not closed.
    if (close - start + 1 < listLeastBytes || close === Number.POSITIVE_INFINITY || this.#others.some(other => other.from(start) < close)) return start
    this.#parts.push(this.#whole.subarray(this.#from, start))
    this.#kept += start - this.#from
    this.#left += close - start
    this.#cuts.push({ at: this.#kept, left: this.#left })
    this.#from = close
    return close
  }
}

const same = (at: number): number => at

/** Finds the next occurrence of a byte. A found offset is remembered, so that no byte is searched twice. */
class NextByte {
  readonly #bytes: Buffer
  readonly #byte: number
  #next = -1

  constructor(bytes: Buffer, byte: number) {
    this.#bytes = bytes
    this.#byte = byte
  }

  /** Returns the first offset of the byte at or after `at`, or infinity if there is none. `at` must never decrease between calls. */
  from(at: number): number {
    if (this.#next < at) {
      const found = this.#bytes.indexOf(this.#byte, at)
      this.#next = found === -1 ? Number.POSITIVE_INFINITY : found
    }
    return this.#next
  }
}

const isNumber = (byte: number | undefined): boolean => byte !== undefined && (byte === minus || (byte >= zero && byte <= nine))
