/**
 * JSON without the numbers of its long lists. A reply of embeddings is nearly all numbers, which nobody here reads: parsing three million of them would hold the
 * event loop for half a second. Lists of numbers are passed over with native searches.
 */
import { pieceBytes, pieceTurn } from './json-body.ts'
import { anyJsonMaxBytes } from './json-bounds.ts'
import { StringWalk, skipWhite } from './json-bytes.ts'

/** Shorter lists stay. */
const listLeastBytes = 64
/** Lists behind so many stay: no provider takes as many texts. */
const listsMax = 20_000
/** Providers that write for readers begin each line with white space. */
const whiteMaxBytes = 256

const quote = 34
const minus = 45
const zero = 48
const nine = 57
const openBracket = 91
const openBrace = 123
const closeBracket = 93

/** JSON to be parsed in place of `whole`. */
export interface LeanJson {
  readonly whole: Buffer
  /** The same JSON with empty lists in place of long lists of numbers; `whole` itself when it has none. */
  readonly lean: Buffer
  /** The offset in `whole` of a byte of `lean`. */
  offsetOf(at: number): number
}

/** JSON that is parsed with all that it has. */
export const asItIs = (whole: Buffer): LeanJson => ({ whole, lean: whole, offsetOf: same })

/**
 * Leaves the numbers of long lists out. Long JSON is looked through in pieces, between which the event loop turns. What is no JSON comes out as something that
 * is no JSON either, but for the numbers, which are not looked at.
 */
export function withoutNumberLists(whole: Buffer): LeanJson | Promise<LeanJson> {
  return whole.length <= anyJsonMaxBytes ? asItIs(whole) : leanInTurns(whole)
}

async function leanInTurns(whole: Buffer): Promise<LeanJson> {
  const lists = new NumberLists(whole)
  while (!lists.to(lists.at + pieceBytes)) await pieceTurn()
  return lists.lean()
}

/** A search for long lists of numbers. It can be done in pieces. */
class NumberLists {
  /** Bytes that are seen. */
  at = 0
  readonly #whole: Buffer
  readonly #strings: StringWalk
  readonly #parts: Buffer[] = []
  /** Where each part begins in `lean`, and how much was left out before it. */
  readonly #cuts: { readonly at: number; readonly left: number }[] = []
  readonly #close: NextByte
  /** What a list of numbers has none of. */
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

  /** Continues to about that offset; a list is passed over whole. True: everything was seen. */
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

  /** Offset of the end of the list that begins before `start`, when it is one that is left out; otherwise `start`. */
  #listEnd(start: number): number {
    if (this.#cuts.length >= listsMax || !isNumber(this.#whole[skipWhite(this.#whole, start, start + whiteMaxBytes)])) return start
    const close = this.#close.from(start)
    // A list with a text, a list or an object in it stays, and one that is not closed.
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

/** Where a byte comes next. What was found once is not looked for again, so that no byte is searched twice. */
class NextByte {
  readonly #bytes: Buffer
  readonly #byte: number
  #next = -1

  constructor(bytes: Buffer, byte: number) {
    this.#bytes = bytes
    this.#byte = byte
  }

  /** Its first offset from `at` on, which never falls; infinity: there is none. */
  from(at: number): number {
    if (this.#next < at) {
      const found = this.#bytes.indexOf(this.#byte, at)
      this.#next = found === -1 ? Number.POSITIVE_INFINITY : found
    }
    return this.#next
  }
}

const isNumber = (byte: number | undefined): boolean => byte !== undefined && (byte === minus || (byte >= zero && byte <= nine))
