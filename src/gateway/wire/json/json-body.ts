/**
 * Parses JSON bodies. No other code does. Parsing is bounded, and numbers that a double cannot hold do not change. Large bodies are first scanned in
 * pieces, so that the event loop can serve other requests in between.
 */
import { StringDecoder } from 'node:string_decoder'
import { fail, GatewayError } from '../../../platform/errors.ts'
import { type ExactNumbers, StandIns, withStandIns } from './exact-numbers.ts'
import { type JsonBounds, JsonScan, type MemberPlaces } from './json-scan.ts'
import { JsonSlices } from './json-slices.ts'

/** A longer body is scanned in pieces of this length. */
export const pieceBytes = 256 * 1024
/** Maximum number of JSON numbers that are examined in one piece, because each takes some microseconds. */
const pieceLooksMax = 2000
/** Most escapes of surrogates, `\ud800` to `\udfff`. */
const surrogatesMax = 400_000
/** Most escapes of half a surrogate pair. A half takes every writer as long as fifty plain characters, and no text has more than a few. */
const halvesMax = 10_000
/** Bytes are decoded to text in pieces of this length. One piece takes little time for any content. */
const textPieceBytes = 1024 * 1024
/** A longer body always counts as heavy. */
const heavyBytes = 1024 * 1024
/** A shorter body never counts as heavy. */
const lightBytes = 16 * 1024
/** A longer body is scanned once, and the result is kept until it is parsed. */
const keptScanBytes = 2 * 1024
/** The memory that one parsed value takes, in bytes. The number is measured for an empty object with its place in a list, and rounded up. */
const valueBytes = 64
/** A body with more values is heavy. */
const lightValuesMax = 10_000
/** A body with more numbers that a double cannot hold is heavy, because replacing one takes some microseconds. */
const lightWideMax = 500

/** The facts about a body before it is parsed. */
interface Seen {
  readonly values: number
  readonly wide: readonly number[] | null
  readonly places: MemberPlaces | null
  /** The body as text. It is null for a body that is parsed in slices, and after the body was parsed. */
  text: string | null
  /** The value of a body that was parsed in slices. It is null until then, and `taken` after `parseExactJson` has returned it. */
  parsed: { readonly value: unknown } | 'taken' | null
}

const seen = new WeakMap<Buffer, Seen>()
const exactOf = new WeakMap<Buffer, ExactNumbers>()

/**
 * Scans a large body in pieces, and gives way to the event loop between them. Returns undefined for a small body, unless it has many long numbers. Rejects
 * with `bad_request`.
 */
export function lookAhead(bytes: Buffer, bounds: JsonBounds): Promise<void> | undefined {
  if (bytes.length <= lightBytes) return undefined
  const scan = new JsonScan(bytes, bounds)
  return bytes.length > pieceBytes || !isScanned(bytes, scan) ? lookInPieces(bytes, scan) : undefined
}

/** Scans a body of at most one piece. Returns false when it has more long numbers than one piece may have. */
function isScanned(bytes: Buffer, scan: JsonScan): boolean {
  try {
    if (!scan.to(bytes.length, pieceLooksMax)) return false
    noteSeen(bytes, scan)
  } catch (error) {
    // Whoever parses the body scans it again, and throws.
    if (!(error instanceof GatewayError)) throw error
  }
  return true
}

async function lookInPieces(bytes: Buffer, scan: JsonScan): Promise<void> {
  const surrogates = new SurrogateCount()
  for (let from = 0, isDone = false; !isDone; from = scan.at) {
    await turns.next()
    isDone = scan.to(scan.at + pieceBytes, pieceLooksMax)
    surrogates.add(bytes.subarray(from, scan.at))
  }
  let text: string | null = null
  if (scan.wide === null && !isHeavySize(bytes, scan)) {
    const decoder = new StringDecoder('utf8')
    text = ''
    for (let offset = 0; offset < bytes.length; offset += textPieceBytes) {
      await turns.next()
      text += decoder.write(bytes.subarray(offset, offset + textPieceBytes))
    }
  }
  seen.set(bytes, { ...seenOf(scan), text })
}

/** Counts the escapes of surrogates in a body, and those of them without their other half. A pair on the border of two parts counts as two halves. */
class SurrogateCount {
  #surrogates = 0
  #halves = 0

  /** Adds a part of the body. Throws `bad_request` beyond a bound. */
  add(part: Buffer): void {
    for (const start of surrogateStarts)
      for (let at = part.indexOf(start); at !== -1; at = part.indexOf(start, at + start.length)) {
        this.#surrogates++
        // A pair is the escape of a high half and, 6 bytes later, that of a low half.
        if (!(isHigh(part, at) && isLow(part, at + escapeBytes)) && !(isLow(part, at) && isHigh(part, at - escapeBytes))) this.#halves++
      }
    if (this.#surrogates > surrogatesMax) throw tooManySurrogates(surrogatesMax, 'escapes of surrogates')
    if (this.#halves > halvesMax) throw tooManySurrogates(halvesMax, 'halves of surrogate pairs')
  }
}

const surrogateStarts = [Buffer.from('\\ud'), Buffer.from('\\uD')]
/** The bytes of `\ud800`. */
const escapeBytes = 6

/** Whether the escape of a high half, `\ud800` to `\udbff`, begins at the offset. */
const isHigh = (bytes: Buffer, at: number): boolean => isSurrogate(bytes, at) && !isLowDigit(bytes[at + 3])
/** Whether the escape of a low half, `\udc00` to `\udfff`, begins at the offset. */
const isLow = (bytes: Buffer, at: number): boolean => isSurrogate(bytes, at) && isLowDigit(bytes[at + 3])

const isSurrogate = (bytes: Buffer, at: number): boolean => bytes[at] === 92 && bytes[at + 1] === 117 && ((bytes[at + 2] ?? 0) | 32) === 100

/** Whether the byte is one of the digits `c` to `f`. */
const isLowDigit = (byte = 0): boolean => (byte | 32) >= 99

const tooManySurrogates = (max: number, what: string): GatewayError =>
  fail('bad_request', { message: `The body has more than ${max} ${what} (\\ud800 to \\udfff). Send the characters themselves.` })

/**
 * Gives each waiting scan its own turn of the event loop, in the order of their requests. One turn scans one piece of one body, so many concurrent bodies
 * do not block the event loop for long.
 */
class PieceTurns {
  readonly #waiting: (() => void)[] = []

  /** Resolves in a turn of the event loop in which no other caller of `next` runs. */
  next(): Promise<void> {
    return new Promise(resolve => {
      this.#waiting.push(resolve)
      if (this.#waiting.length === 1) setImmediate(this.#serve)
    })
  }

  readonly #serve = (): void => {
    this.#waiting.shift()?.()
    if (this.#waiting.length > 0) setImmediate(this.#serve)
  }
}

const turns = new PieceTurns()

/** Resolves in a turn of the event loop in which no other large body or reply is scanned. */
export const pieceTurn = (): Promise<void> => turns.next()

/** Whether work on a body can take long enough to delay other requests. Throws `bad_request`. */
export function isHeavy(bytes: Buffer, bounds: JsonBounds): boolean {
  if (bytes.length <= lightBytes) return false
  return bytes.length > heavyBytes || isHeavySize(bytes, look(bytes, bounds))
}

const isHeavySize = ({ length }: Buffer, { values, wide }: Pick<Seen, 'values' | 'wide'>): boolean =>
  length > heavyBytes || values > lightValuesMax || (wide !== null && wide.length > 2 * lightWideMax)

/**
 * Parses a heavy body in slices. Each slice is one call of `inTurn`. The first `parseExactJson` of the same bytes then returns the value without work. Rejects
 * with `bad_request`, also for a text that is not JSON.
 */
export async function parseAhead(bytes: Buffer, bounds: JsonBounds, inTurn: <T>(work: () => T) => Promise<T>): Promise<void> {
  const found = look(bytes, bounds)
  if (found.parsed !== null) return
  const { wide } = found
  const slices = new JsonSlices(wide === null ? bytes : await replaceWideInTurns(bytes, wide, inTurn))
  const next = (): unknown => wellFormed(() => slices.next())
  while ((await inTurn(next)) === false);
  found.text = null
  found.parsed = { value: slices.value }
  seen.set(bytes, found)
}

/** Returns the body with replacements for the numbers that a double cannot hold, and keeps their digits. */
function replaceWide(bytes: Buffer, wide: readonly number[]): Buffer {
  const { replaced, exact } = withStandIns(bytes, wide)
  exactOf.set(bytes, exact)
  return replaced
}

/** Does the same in turns of the event loop, because a body may have many long numbers. */
async function replaceWideInTurns(bytes: Buffer, wide: readonly number[], inTurn: <T>(work: () => T) => Promise<T>): Promise<Buffer> {
  const standIns = new StandIns(bytes, wide)
  const next = (): boolean => standIns.next()
  while (!(await inTurn(next)));
  const { replaced, exact } = await inTurn(() => standIns.result)
  exactOf.set(bytes, exact)
  return replaced
}

function look(bytes: Buffer, bounds: JsonBounds): Seen {
  const known = seen.get(bytes)
  if (known !== undefined) return known
  const scan = new JsonScan(bytes, bounds)
  scan.to(bytes.length)
  return noteSeen(bytes, scan)
}

/** Keeps the result of a scan of a whole body. Throws `bad_request`. */
function noteSeen(bytes: Buffer, scan: JsonScan): Seen {
  if (bytes.length > lightBytes) new SurrogateCount().add(bytes)
  const found = seenOf(scan)
  if (bytes.length > keptScanBytes) seen.set(bytes, found)
  return found
}

const seenOf = ({ values, wide, memberPlaces }: JsonScan): Seen => ({ values, wide, places: memberPlaces, text: null, parsed: null })

/** Returns where the outermost members of a scanned body are. Undefined when that is not known. The body must be a JSON object that was parsed. */
export const memberPlacesOf = (bytes: Buffer): MemberPlaces | undefined => seen.get(bytes)?.places ?? undefined

/**
 * Returns the memory, in bytes, that the parsed values of a body need in addition to the size of its text. A body of empty objects grows to thirty times
 * its length. Returns 0 for a short body, and for a body that parsing will refuse.
 */
export function valueRoomBytes(bytes: Buffer, bounds: JsonBounds): number {
  if (bytes.length <= keptScanBytes) return 0
  try {
    return Math.max(0, look(bytes, bounds).values * valueBytes - bytes.length)
  } catch {
    return 0
  }
}

/** Parses a body. Numbers are read by JSON.parse. Throws `bad_request` that names the bound, and SyntaxError. */
export function parseJson(bytes: Buffer, bounds: JsonBounds): unknown {
  const found = look(bytes, bounds)
  return JSON.parse(takeText(bytes, found))
}

/**
 * Parses a body like `parseJson`, with replacements for the numbers that a double cannot hold. `exactNumbersOf`, called with the same bytes, returns the
 * original numbers, which can be put back into written text.
 */
export function parseExactJson(bytes: Buffer, bounds: JsonBounds): unknown {
  const found = look(bytes, bounds)
  const { parsed, wide } = found
  if (parsed !== null && parsed !== 'taken') {
    found.parsed = 'taken'
    return parsed.value
  }
  return JSON.parse(wide === null ? takeText(bytes, found) : replaceWide(bytes, wide).toString('utf8'))
}

/** Returns the replaced numbers of a body that `parseExactJson` has read; undefined if there are none. */
export const exactNumbersOf = (bytes: Buffer): ExactNumbers | undefined => exactOf.get(bytes)

/** Returns the number of digits that the values of a body have lost, because the replacements of long numbers are shorter. */
export const unseenDigitsOf = (bytes: Buffer): number => exactOf.get(bytes)?.extraChars ?? 0

/** Returns the text of a body and drops the reference to it, so that a large text can be freed early. */
function takeText(bytes: Buffer, found: Seen): string {
  const text = found.text ?? bytes.toString('utf8')
  found.text = null
  return text
}

/** Parses a body. Throws `bad_request`, also for a text that is not JSON. */
function parseBody(bytes: Buffer, bounds: JsonBounds): unknown {
  return wellFormed(() => parseJson(bytes, bounds))
}

/**
 * Parses a body like `parseBody`. A longer one is parsed in slices, each in a turn of the event loop, and the result is then a promise of the value. It rejects
 * with `bad_request`, also for a text that is not JSON.
 */
export function parseBodyInTurns(bytes: Buffer, bounds: JsonBounds): unknown {
  return bytes.length <= heavyBytes ? parseBody(bytes, bounds) : parseSlices(bytes, bounds)
}

async function parseSlices(bytes: Buffer, bounds: JsonBounds): Promise<unknown> {
  look(bytes, bounds)
  const slices = new JsonSlices(bytes)
  do await turns.next()
  while (wellFormed(() => slices.next()) === false)
  return slices.value
}

/** Returns the result of `parse`. Throws `bad_request` if the text is not JSON. */
export function wellFormed(parse: () => unknown, message = 'The body is not valid JSON.'): unknown {
  try {
    return parse()
  } catch (cause) {
    throw cause instanceof SyntaxError ? fail('bad_request', { message, cause }) : cause
  }
}
