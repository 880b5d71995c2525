/**
 * Numbers that a double cannot hold, such as the int64 9007199254740993: JSON.parse would change them. Each is replaced while reading by a random number
 * near it, whose digits occur elsewhere only with a chance of one in 2^40, and gets its own digits again when the value is written. Decision 0373 says
 * why.
 */
import { randomFillSync } from 'node:crypto'
import { fail } from '../../../platform/errors.ts'

/** JavaScript writes whole numbers from here on with an exponent. */
const plainMax = 1e21
/** From here on a double has no room for a fraction. */
const wholeMin = 2 ** 52
/** Smaller doubles have few digits each, so that there are not enough of them to choose from. */
const normalMin = 2 ** -1022
/** Most digits that a double can be asked for. */
const askedDigitsMax = 100
/** A longer number goes on as it came, without a closer look. */
const lookedAtChars = 120
/** A translation may repeat a number: its extra digits, compared with the replacement, may be sent this many times. */
const sentTimesMax = 4
/** Characters that the digits of small numbers may grow by beside. */
const sentSlackChars = 65_536

/**
 * Whether a number of JSON, without its sign, is the same one when a double has held it: of a whole number and of a large one what JavaScript
 * writes is the same, of others the double gives the same digits when it is asked for as many.
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
  /** Without zeros at both ends. */
  readonly digits: string
  /** Of the first digit. */
  readonly exponent: number
}

function decimalOf(token: string): Decimal {
  const [mantissa = '', power = '0'] = token.split(/e/i)
  const [whole = '', fraction = ''] = mantissa.split('.')
  const all = whole + fraction
  const from = all.search(/[1-9]/)
  if (from === -1) return { digits: '', exponent: 0 }
  // Without a pattern, which would start again at each zero of a long row.
  let end = all.length
  while (all[end - 1] === '0') end--
  return { digits: all.slice(from, end), exponent: whole.length - 1 - from + Number(power) }
}

/** The numbers of one body that are not held. */
export class ExactNumbers {
  /** How a number in their place is written -> the digits that came. */
  readonly #digits: ReadonlyMap<string, string>
  /** Characters by which the numbers are longer than their replacements, counted at each place that has one. */
  readonly extraChars: number

  constructor(digits: ReadonlyMap<string, string>, extraChars = 0) {
    this.#digits = digits
    this.extraChars = extraChars
  }

  /** The room that one request to a provider has for digits. */
  room(): DigitRoom {
    return { chars: this.extraChars * sentTimesMax + sentSlackChars }
  }

  /** What is written, with the digits that came. Throws `bad_request` when they need more than a `room` that is given. */
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

/** Characters that digits may still add to what is written. */
export interface DigitRoom {
  chars: number
}

function take(room: DigitRoom, chars: number): void {
  room.chars -= Math.max(0, chars)
  if (room.chars < 0)
    throw fail('bad_request', { message: 'A long number of the body would be written many times for this model. Send it as a string, or with fewer digits.' })
}

/** Numbers that may be replacements. Much longer ones are not, and their length is bounded here because a pattern over millions of digits throws. */
const standInShape = /(?<![\d.])(?=[\d.]{16})\d{1,400}(?:\.\d{1,400})?(?:e[+-]?\d{1,400})?/g
/** A number of JSON without its sign. */
const jsonNumber = /^(?:0|[1-9]\d*)(?:\.\d+)?(?:e[+-]?\d+)?$/i
/** One number in a hundred is too short to be a replacement; that many in a row never are. */
const standInTries = 32

/** A body as text in which numbers that a double cannot hold are others, and their digits. `wide` are their offsets, begin and end in turn. */
export function withStandIns(bytes: Buffer, wide: readonly number[]): { readonly text: string; readonly exact: ExactNumbers } {
  const digits = new Map<string, string>()
  const taken = new Map<string, string>()
  const parts: string[] = []
  let at = 0
  let extraChars = 0
  for (let index = 0; index < wide.length; index += 2) {
    const start = wide[index] as number
    const end = wide[index + 1] as number
    const token = bytes.toString('latin1', start, end)
    // What is no number stays, for the parser to refuse: it must not become one on the way.
    if (!jsonNumber.test(token)) continue
    const before = taken.get(token)
    const standIn = before ?? freshStandIn(token, digits)
    if (before === undefined) {
      taken.set(token, standIn)
      digits.set(standIn, token)
    }
    extraChars += Math.max(0, token.length - standIn.length)
    parts.push(bytes.toString('utf8', at, start), standIn)
    at = end
  }
  parts.push(bytes.toString('utf8', at))
  return { text: parts.join(''), exact: new ExactNumbers(digits, extraChars) }
}

/** Throws `bad_request` for a number without a possible replacement. */
function freshStandIn(token: string, taken: ReadonlyMap<string, string>): string {
  for (let tries = 0; tries < standInTries; tries++) {
    const text = String(near(token))
    if (text.match(standInShape)?.[0] === text && !taken.has(text)) return text
  }
  throw fail('bad_request', { message: 'The body has a number that a double cannot hold. Send it as a string.' })
}

/** Randomness is not injected here: no visible result depends on it, and a caller who knew it could only change their own text. */
const dice = new Uint32Array(2)

/** A random number of about the same size, so that a check of a range has the same result. */
function near(token: string): number {
  randomFillSync(dice)
  const share = ((dice[0] as number) * 2 ** 21 + (dice[1] as number) / 2 ** 11) / 2 ** 53
  const value = Number(token)
  if (!Number.isFinite(value)) return Number.MAX_VALUE * (0.5 + share / 2)
  if (value < normalMin) return 1e-300 * (1 + share)
  const below = value * (1 - share * 2 ** -12)
  if (value >= plainMax) return below
  const above = value * (1 + share * 2 ** -12)
  // Upwards: a whole number beyond the exact range of JavaScript stays beyond it.
  if (value >= wholeMin) return Math.round(above)
  // A number just beside a whole one, which is what a range mostly ends at, stays on its side of it.
  if (Number.isInteger(value)) return isLess(token, value) ? below : above
  return Math.floor(above) === Math.floor(value) ? above : below
}

/** Whether a number is less than the double that it is read as. */
function isLess(token: string, value: number): boolean {
  const came = decimalOf(token)
  const read = decimalOf(String(value))
  return came.exponent === read.exponent ? came.digits < read.digits : came.exponent < read.exponent
}
