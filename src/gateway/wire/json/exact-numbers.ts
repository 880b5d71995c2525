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
    // Most bodies have few long numbers. A search for each of them is many times faster than a look at every number of the text.
    if (this.#digits.size <= searchedMax && !this.#occursIn(written)) return written
    const text = typeof written === 'string' ? written : written.toString('utf8')
    const made = text.replace(standInShape, token => {
      const digits = this.#digits.get(token)
      if (digits === undefined) return token
      if (room !== undefined) take(room, digits.length - token.length)
      return digits
    })
    return (typeof written === 'string' ? made : made === text ? written : Buffer.from(made)) as T
  }

  #occursIn(written: Buffer | string): boolean {
    for (const standIn of this.#digits.keys()) if (written.includes(standIn)) return true
    return false
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
/** A text that is a possible replacement as a whole. */
const wholeStandIn = /^(?=[\d.]{16})\d{1,400}(?:\.\d{1,400})?(?:e[+-]?\d{1,400})?$/
/** At most this many replacements are searched one by one. */
const searchedMax = 8
/** Number of tries to find a replacement. About one random number in a hundred is too short, so this many failures in a row do not occur. */
const standInTries = 32

/** A body with replacements, and the original digits. */
interface Replaced {
  readonly replaced: Buffer
  readonly exact: ExactNumbers
}

/** Returns a body with a replacement for each number that a double cannot hold. `wide` is the offsets of these numbers: begin and end in turn. */
export function withStandIns(bytes: Buffer, wide: readonly number[]): Replaced {
  const standIns = new StandIns(bytes, wide)
  while (!standIns.next());
  return standIns.result
}

/** The numbers that one call of `StandIns.next` replaces. Each takes some microseconds. */
const numbersOfPart = 1000

/** Replaces the numbers of a body part by part. A body may have a hundred thousand of them. */
export class StandIns {
  readonly #bytes: Buffer
  readonly #wide: readonly number[]
  readonly #digits = new Map<string, string>()
  readonly #taken = new Map<string, string>()
  readonly #parts: Buffer[] = []
  #index = 0
  #at = 0
  #extraChars = 0

  constructor(bytes: Buffer, wide: readonly number[]) {
    this.#bytes = bytes
    this.#wide = wide
  }

  /** Replaces the next numbers. Returns true when all are replaced. Throws `bad_request` for a number without a replacement. */
  next(): boolean {
    for (const end = this.#index + 2 * numbersOfPart; this.#index < Math.min(end, this.#wide.length); this.#index += 2)
      this.#replace(this.#wide[this.#index] as number, this.#wide[this.#index + 1] as number)
    return this.#index >= this.#wide.length
  }

  get result(): Replaced {
    return {
      replaced: Buffer.concat([...this.#parts, this.#bytes.subarray(this.#at)]),
      exact: new ExactNumbers(this.#digits, this.#extraChars),
    }
  }

  #replace(start: number, end: number): void {
    const token = this.#bytes.toString('latin1', start, end)
    // A token that is not a valid number is left unchanged, so that the parser refuses it.
    if (!jsonNumber.test(token)) return
    const before = this.#taken.get(token)
    const standIn = before ?? freshStandIn(token, this.#digits)
    if (before === undefined) {
      this.#taken.set(token, standIn)
      this.#digits.set(standIn, token)
    }
    this.#extraChars += Math.max(0, token.length - standIn.length)
    this.#parts.push(this.#bytes.subarray(this.#at, start), Buffer.from(standIn, 'latin1'))
    this.#at = end
  }
}

/** Returns a replacement for a number. Throws `bad_request` if there is none. */
function freshStandIn(token: string, taken: ReadonlyMap<string, string>): string {
  for (let tries = 0; tries < standInTries; tries++) {
    const text = String(near(token))
    if (wholeStandIn.test(text) && !taken.has(text)) return text
  }
  throw fail('bad_request', { message: 'The body has a number that a double cannot hold. Send it as a string.' })
}

/**
 * These random numbers are not injected, because no visible result depends on them. A caller who could predict them could change only the text of that
 * caller's own request.
 */
const dice = new Uint32Array(512)
let diceLeft = 0

/** Returns a random number from 0 to 1. The system is asked for many at a time, because each request costs more than the number. */
function random(): number {
  if (diceLeft === 0) {
    randomFillSync(dice)
    diceLeft = dice.length
  }
  diceLeft -= 2
  return ((dice[diceLeft] as number) * 2 ** 21 + (dice[diceLeft + 1] as number) / 2 ** 11) / 2 ** 53
}

/** Returns a random number of about the same size, so that a range check has the same result. */
function near(token: string): number {
  const share = random()
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
