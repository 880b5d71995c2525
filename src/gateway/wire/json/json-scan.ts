/**
 * Scans the bytes of JSON before they are parsed. It finds how deep they are nested, how many values they have, and which numbers a double cannot hold.
 * Parsing creates objects and so delays every other caller. This scan creates no objects and skips strings with native searches. It does not check that the
 * bytes are JSON, because the parser does that.
 */
import { fail, type GatewayError } from '../../../platform/errors.ts'
import { isHeld } from './exact-numbers.ts'
import { StringWalk } from './json-bytes.ts'

/** Bounds of a JSON body. */
export interface JsonBounds {
  /** Maximum depth of nested objects and lists. */
  readonly depthMax: number
  /** Maximum number of values: members, items, objects and lists. */
  readonly valuesMax: number
  /** Most members of one object. */
  readonly membersMax: number
}

/** The options of a scan whose JSON is only a part of the bounded input. */
export interface ScanPart {
  /** The name of the bounded input in errors. */
  readonly holder: string
  /** The number of values in the earlier parts. */
  readonly valuesBefore: number
}

/** Bounds of inference bodies. A long conversation has some ten thousand values, and a bias for tokens or a schema some thousand members. */
export const inferenceBounds: JsonBounds = { depthMax: 128, valuesMax: 150_000, membersMax: 10_000 }
/** Bounds of bodies of management and MCP requests. Schemas check these bodies. */
export const managementBounds: JsonBounds = { depthMax: 128, valuesMax: 50_000, membersMax: 10_000 }
/** The fewest bytes of a member: two quotes, a colon, a digit and a comma. Members of shorter JSON need no count. */
const memberMinBytes = 5
/** Most numbers of a body that a double cannot hold. */
export const wideNumbersMax = 10_000

/** Maximum number of bytes from the start of a member's name to its colon. A name is parsed in one turn of the event loop, and no honest name is as long. */
const nameMaxBytes = 64 * 1024
/** A longer text must be an object or a list, because a string that is the whole text is parsed in one turn of the event loop. */
const scalarMaxBytes = 1024 * 1024
/** Maximum number of characters of a number. */
const numberCharsMax = 1000
/** A double holds every number with at most this many digits and a small exponent. */
const heldDigits = 15
/** The characters of a small exponent, up to 99, including its `e`. A sign adds one more. */
const smallExponentChars = 3

/** Where the members of the outermost object are. */
export interface MemberPlaces {
  /** Three numbers for each member: the offset of its name's first quote, the offset after its colon, and the number of colons before that one. */
  readonly places: readonly number[]
  /** The number of colons outside strings, which is the number of members of all objects. */
  readonly colons: number
}

/** One scan. It can be done in pieces. */
export class JsonScan {
  /** The offsets of the numbers that a double cannot hold: start and end of the first, start and end of the second, and so on. */
  wide: number[] | null = null
  readonly #bytes: Buffer
  readonly #strings: StringWalk
  readonly #bounds: JsonBounds
  readonly #holder: string
  readonly #seesNumbers: boolean
  /** The number of members of the open object at each depth. null: the JSON is too short for too many. */
  readonly #members: number[] | null
  readonly #places: number[] = []
  #colons = 0
  #at = 0
  #depth = 0
  #values: number
  /** The number of numbers that were examined. */
  #looks = 0
  /** The offset after the opening quote of the last string. */
  #textFrom = 0

  /** `part`: the bytes are only a part of the input. Their numbers are not examined. */
  constructor(bytes: Buffer, bounds: JsonBounds, part?: ScanPart) {
    this.#bytes = bytes
    this.#strings = new StringWalk(bytes, bytes.length)
    this.#bounds = bounds
    this.#holder = part?.holder ?? 'The body'
    this.#values = 1 + (part?.valuesBefore ?? 0)
    this.#seesNumbers = part === undefined
    this.#members = bytes.length < bounds.membersMax * memberMinBytes ? null : [0]
  }

  /** The number of values so far, including those of the earlier parts. */
  get values(): number {
    return this.#values
  }

  /** The offset up to which the bytes are scanned. */
  get at(): number {
    return this.#at
  }

  /** The places of the outermost members, after the scan. Null for short JSON. They have a meaning only if the bytes are a JSON object. */
  get memberPlaces(): MemberPlaces | null {
    return this.#members === null ? null : { places: this.#places, colons: this.#colons }
  }

  /**
   * Continues to about that offset, or until `looksMax` numbers were examined. Returns true if everything was scanned. Throws `bad_request` that names the
   * bound.
   */
  to(offset: number, looksMax = Number.MAX_SAFE_INTEGER): boolean {
    const bytes = this.#bytes
    const strings = this.#strings
    let end = Math.min(offset, bytes.length)
    const looksEnd = this.#looks + looksMax
    const { depthMax, valuesMax, membersMax } = this.#bounds
    const members = this.#members
    const firstDigit = this.#seesNumbers ? 48 : 256
    let at = this.#at
    let depth = this.#depth
    let values = this.#values
    let textFrom = this.#textFrom
    if (strings.isInString) at = strings.to(at, end)
    while (at < end) {
      const byte = bytes[at++] as number
      if (byte === 34) {
        textFrom = at
        at = strings.to(at, end)
      } else if (byte === 44) {
        if (++values > valuesMax) throw tooMany(valuesMax, this.#holder)
      } else if (byte === 123 || byte === 91) {
        if (++depth > depthMax) throw tooDeep(depthMax, this.#holder)
        if (++values > valuesMax) throw tooMany(valuesMax, this.#holder)
        if (members !== null && depth > 0) members[depth] = 0
      } else if (byte === 125 || byte === 93) depth--
      else if (byte === 58 && members !== null && depth > 0) {
        if (++(members[depth] as number) > membersMax) throw tooWide(membersMax, this.#holder)
        if (at - textFrom > nameMaxBytes) throw tooLongName(this.#holder)
        if (depth === 1) this.#places.push(textFrom - 1, at, this.#colons)
        this.#colons++
      } else if (byte >= firstDigit && byte <= 57) {
        at = this.#numberEnd(at, values)
        if (this.#looks >= looksEnd) end = at
      }
    }
    this.#at = at
    this.#depth = depth
    this.#values = values
    this.#textFrom = textFrom
    if (at < bytes.length) return false
    if (values === 1 && at > scalarMaxBytes && this.#seesNumbers) throw tooLongScalar(this.#holder)
    return true
  }

  /** Returns the offset after the number whose first digit is just before `from`. `values` is the count so far. */
  #numberEnd(from: number, values: number): number {
    const bytes = this.#bytes
    let at = from
    let exponentAt = -1
    for (;;) {
      const byte = bytes[at] as number
      // A number consists of digits and `.`, then `e` or `E` and the sign of an exponent.
      if ((byte >= 48 && byte <= 57) || byte === 46) at++
      else if (byte === 101 || byte === 69 || byte === 43 || byte === 45) {
        if (exponentAt === -1) exponentAt = at
        at++
      } else break
    }
    const start = from - 1
    if (at - start > numberCharsMax) throw fail('bad_request', { message: `A number of the body has more than ${numberCharsMax} characters.` })
    if (exponentAt === -1 && at - start <= heldDigits) return at
    const mantissaEnd = exponentAt === -1 ? at : exponentAt
    const hasSign = mantissaEnd + 1 < at && (bytes[mantissaEnd + 1] as number) < 48
    if (mantissaEnd - start <= heldDigits && at - mantissaEnd <= smallExponentChars + Number(hasSign)) return at
    // In JSON, each number is either the first item of a list or object or comes after a comma. The scan counts both as values, so JSON never has more
    // numbers than values.
    if (++this.#looks > values) throw notJson()
    if (!isHeld(bytes.toString('latin1', start, at))) this.#note(start, at)
    return at
  }

  #note(start: number, end: number): void {
    this.wide ??= []
    this.wide.push(start, end)
    if (this.wide.length > 2 * wideNumbersMax)
      throw fail('bad_request', { message: `The body has more than ${wideNumbersMax} numbers that a double cannot hold. Send them as strings.` })
  }
}

const notJson = (): GatewayError => fail('bad_request', { message: 'The body is not valid JSON.' })
const tooDeep = (max: number, holder: string): GatewayError =>
  fail('bad_request', { message: `${holder} is nested too deeply: at most ${max} objects and lists may be inside each other.` })
const tooWide = (max: number, holder: string): GatewayError =>
  fail('bad_request', { message: `${holder} has an object with too many members: one object may have at most ${max}.` })
const tooLongName = (holder: string): GatewayError =>
  fail('bad_request', { message: `${holder} has a name of a member that is too long: at most ${nameMaxBytes} bytes.` })
const tooLongScalar = (holder: string): GatewayError => fail('bad_request', { message: `${holder} is longer than 1 MiB, so it must be an object or a list.` })
const tooMany = (max: number, holder: string): GatewayError =>
  fail('bad_request', { message: `${holder} has too many values: at most ${max} members, items, objects and lists together.` })
