/**
 * Numbers that a double cannot hold exactly, such as the int64 9007199254740993. JSON.parse would change them. So each of them is replaced before parsing
 * by a random number near it. When the value is written, the replacement becomes the original digits again. The chance that the digits of a replacement
 * also occur elsewhere is one in 2^40. Decision 0373 gives the reasons.
 */
import { randomFillSync } from 'node:crypto'
import { fail } from '../../../platform/errors.ts'

/** From this number on, JavaScript writes whole numbers with an exponent. */
const plainMax = 1e21
/** From this number on, a double has no room for a fraction. */
const wholeMin = 2 ** 52
/** Doubles below this number have few significant digits, so there are too few of them to choose a replacement from. */
const normalMin = 2 ** -1022
/** Maximum number of digits that `toExponential` can return. */
const askedDigitsMax = 100
/** A number with more characters is not examined. It counts as a number that a double cannot hold. */
const lookedAtChars = 120
/** A translation may repeat a number. The extra digits of an original number may be sent at most this many times. */
const sentTimesMax = 4
/** This number of extra characters is allowed in addition, for the digits of small numbers. */
const sentSlackChars = 65_536

/**
 * Returns whether a JSON number, without its sign, keeps its value as a double. A whole or a large number does if JavaScript writes the double with the
 * same digits. Any other number does if the double, written with the same number of digits, gives the same digits.
 */
export function isHeld(token: string): boolean {
  if (token.length > lookedAtChars) return false
  const value = Number(token)
  if (String(value) === token) return true
  if (/^\d+$/.test(token)) return false
  const { digits, exponent } = decimalOf(token)
  if (digits === '') return true
  if (!Number.isFinite(value) || value === 0 || digits.length > askedDigitsMax) return false
  const told = decimalOf(value > Number.MAX_SAFE_INTEGER ? String(value) : value.toExponential(digits.length - 1))
  return told.digits === digits && told.exponent === exponent
}

interface Decimal {
  /** The digits without zeros at both ends. */
  readonly digits: string
  /** The exponent of the first digit. */
  readonly exponent: number
}

function decimalOf(token: string): Decimal {
  const [mantissa = '', power = '0'] = token.split(/e/i)
  const [whole = '', fraction = ''] = mantissa.split('.')
  const all = whole + fraction
  const from = all.search(/[1-9]/)
  if (from === -1) return { digits: '', exponent: 0 }
  // This is a loop, because a regular expression would take quadratic time for a long run of zeros.
  let end = all.length
  while (all[end - 1] === '0') end--
  return { digits: all.slice(from, end), exponent: whole.length - 1 - from + Number(power) }
}

/** The numbers of one body that a double cannot hold. */
export class ExactNumbers {
  /** The text of a replacement -> the digits of the original number. */
  readonly #digits: ReadonlyMap<string, string>
  /** The number of characters by which the original numbers are longer than their replacements, summed over all places. */
  readonly extraChars: number

  constructor(digits: ReadonlyMap<string, string>, extraChars = 0) {
    this.#digits = digits
    this.extraChars = extraChars
  }

  /** Returns the limit of extra digits for one request to a provider. */
  room(): DigitRoom {
    return { chars: this.extraChars * sentTimesMax + sentSlackChars }
  }

  /** Returns the written text with the original digits. Throws `bad_request` if they need more than the given `room`. */
  restored<T extends Buffer | string>(written: T, room?: DigitRoom): T {
    const text = typeof written === 'string' ? written : written.toString('utf8')
    const made = text.replace(standInShape, token => {
      const digits = this.#digits.get(token)
      if (digits === undefined) return token
      if (room !== undefined) take(room, digits.length - token.length)
      return digits
    })
    return (typeof written === 'string' ? made : made === text ? written : Buffer.from(made)) as T
  }
}

/** The number of characters that original digits may still add to a request. */
export interface DigitRoom {
  chars: number
}

function take(room: DigitRoom, chars: number): void {
  room.chars -= Math.max(0, chars)
  if (room.chars < 0)
    throw fail('bad_request', { message: 'A long number of the body would be written many times for this model. Send it as a string, or with fewer digits.' })
}

/** Matches numbers that may be replacements. The length is bounded, because replacements are never longer and a match over millions of digits throws. */
const standInShape = /(?<![\d.])(?=[\d.]{16})\d{1,400}(?:\.\d{1,400})?(?:e[+-]?\d{1,400})?/g
/** A JSON number without its sign. */
const jsonNumber = /^(?:0|[1-9]\d*)(?:\.\d+)?(?:e[+-]?\d+)?$/i
/** Number of tries to find a replacement. About one random number in a hundred is too short, so this many failures in a row do not occur. */
const standInTries = 32

/** Returns a body with a replacement for each number that a double cannot hold, and the original digits. `wide` is the offsets of these numbers: begin and end in turn. */
export function withStandIns(bytes: Buffer, wide: readonly number[]): { readonly replaced: Buffer; readonly exact: ExactNumbers } {
  const digits = new Map<string, string>()
  const taken = new Map<string, string>()
  const parts: Buffer[] = []
  let at = 0
  let extraChars = 0
  for (let index = 0; index < wide.length; index += 2) {
    const start = wide[index] as number
    const end = wide[index + 1] as number
    const token = bytes.toString('latin1', start, end)
    // A token that is not a valid number is left unchanged, so that the parser refuses it.
    if (!jsonNumber.test(token)) continue
    const before = taken.get(token)
    const standIn = before ?? freshStandIn(token, digits)
    if (before === undefined) {
      taken.set(token, standIn)
      digits.set(standIn, token)
    }
    extraChars += Math.max(0, token.length - standIn.length)
    parts.push(bytes.subarray(at, start), Buffer.from(standIn, 'latin1'))
    at = end
  }
  parts.push(bytes.subarray(at))
  return { replaced: Buffer.concat(parts), exact: new ExactNumbers(digits, extraChars) }
}

/** Returns a replacement for a number. Throws `bad_request` if there is none. */
function freshStandIn(token: string, taken: ReadonlyMap<string, string>): string {
  for (let tries = 0; tries < standInTries; tries++) {
    const text = String(near(token))
    if (text.match(standInShape)?.[0] === text && !taken.has(text)) return text
  }
  throw fail('bad_request', { message: 'The body has a number that a double cannot hold. Send it as a string.' })
}

/**
 * These random numbers are not injected, because no visible result depends on them. A caller who could predict them could change only the text of that
 * caller's own request.
 */
const dice = new Uint32Array(2)

/** Returns a random number of about the same size, so that a range check has the same result. */
function near(token: string): number {
  randomFillSync(dice)
  const share = ((dice[0] as number) * 2 ** 21 + (dice[1] as number) / 2 ** 11) / 2 ** 53
  const value = Number(token)
  if (!Number.isFinite(value)) return Number.MAX_VALUE * (0.5 + share / 2)
  if (value < normalMin) return 1e-300 * (1 + share)
  const below = value * (1 - share * 2 ** -12)
  if (value >= plainMax) return below
  const above = value * (1 + share * 2 ** -12)
  // The replacement is larger, so that a whole number beyond the safe integers of JavaScript is replaced by another one beyond them.
  if (value >= wholeMin) return Math.round(above)
  // Range checks mostly compare with whole numbers. The replacement of a number very near to a whole number is therefore on the same side of it.
  if (Number.isInteger(value)) return isLess(token, value) ? below : above
  return Math.floor(above) === Math.floor(value) ? above : below
}

/** Returns whether a number is less than the double that JavaScript reads for it. */
function isLess(token: string, value: number): boolean {
  const came = decimalOf(token)
  const read = decimalOf(String(value))
  return came.exponent === read.exponent ? came.digits < read.digits : came.exponent < read.exponent
}
