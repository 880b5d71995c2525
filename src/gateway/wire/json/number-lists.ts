/**
 * JSON without the numbers of its long lists. A reply of embeddings is nearly all numbers, which nobody here reads: parsing three million of them would hold the
 * event loop for half a second. Lists of numbers are passed over with native searches.
 */

/** Text up to this length is parsed as it is. */
const anyJsonMaxBytes = 64 * 1024
/** Shorter lists stay. */
const listLeastBytes = 64

const quote = 34
const minus = 45
const zero = 48
const nine = 57
const openBracket = 91
const openBrace = 123
const backslash = 92
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

/** Leaves the numbers of long lists out. What is no JSON comes out as something that is no JSON either, but for the numbers, which are not looked at. */
export function withoutNumberLists(whole: Buffer): LeanJson {
  if (whole.length <= anyJsonMaxBytes) return asItIs(whole)
  const parts: Buffer[] = []
  /** Where each part begins in `lean`, and how much was left out before it. */
  const cuts: { readonly at: number; readonly left: number }[] = []
  let from = 0
  let kept = 0
  let left = 0
  const others = [new NextByte(whole, quote), new NextByte(whole, openBracket), new NextByte(whole, openBrace)]
  let at = 0
  while (at < whole.length) {
    const byte = whole[at]
    if (byte === quote) {
      at = closingQuote(whole, at + 1) + 1
      continue
    }
    if (byte !== openBracket || !isNumber(whole[at + 1])) {
      at++
      continue
    }
    const close = whole.indexOf(closeBracket, at)
    // A list with a text, a list or an object in it stays, and one that is not closed.
    if (close === -1 || close - at < listLeastBytes || others.some(other => other.after(at) < close)) {
      at++
      continue
    }
    parts.push(whole.subarray(from, at + 1))
    kept += at + 1 - from
    left += close - at - 1
    cuts.push({ at: kept, left })
    from = close
    at = close + 1
  }
  if (parts.length === 0) return asItIs(whole)
  parts.push(whole.subarray(from))
  return { whole, lean: Buffer.concat(parts), offsetOf: place => place + (cuts.findLast(cut => cut.at <= place)?.left ?? 0) }
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

  /** Its first offset behind `at`, which never falls; infinity: there is none. */
  after(at: number): number {
    if (this.#next <= at) {
      const found = this.#bytes.indexOf(this.#byte, at + 1)
      this.#next = found === -1 ? Number.POSITIVE_INFINITY : found
    }
    return this.#next
  }
}

/** White space before the first number is not looked for: no provider writes it. */
const isNumber = (byte: number | undefined): boolean => byte !== undefined && (byte === minus || (byte >= zero && byte <= nine))

function closingQuote(bytes: Buffer, from: number): number {
  let at = from
  for (;;) {
    at = bytes.indexOf(quote, at)
    if (at === -1) return bytes.length
    let slashes = 0
    while (at - 1 - slashes >= from && bytes[at - 1 - slashes] === backslash) slashes++
    if (slashes % 2 === 0) return at
    at++
  }
}
