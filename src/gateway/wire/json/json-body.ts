/**
 * Parses JSON bodies. No other code does. Parsing is bounded, and numbers that a double cannot hold do not change. Large bodies are first scanned in
 * pieces, so that the event loop can serve other requests in between.
 */
import { StringDecoder } from 'node:string_decoder'
import { fail, type GatewayError } from '../../../platform/errors.ts'
import { type ExactNumbers, withStandIns } from './exact-numbers.ts'
import { type JsonBounds, JsonScan } from './json-scan.ts'

/** A longer body is scanned in pieces of this length. */
export const pieceBytes = 256 * 1024
/** Maximum number of JSON numbers that are examined in one piece, because each takes some microseconds. */
const pieceLooksMax = 2000
/** Maximum number of escapes of surrogates, `\ud800` to `\udfff`. Writing an unpaired surrogate takes as long as writing fifty plain characters. */
const surrogatesMax = 400_000
/** Bytes are decoded to text in pieces of this length, which takes little time for any content. */
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

/** The facts about a body before it is parsed. */
interface Seen {
  readonly values: number
  readonly wide: readonly number[] | null
  /** The body as text. It is null after the body was parsed. */
  text: string | null
}

const seen = new WeakMap<Buffer, Seen>()
const exactOf = new WeakMap<Buffer, ExactNumbers>()

/** Scans a large body in pieces, and gives way to the event loop between them. Returns undefined for a small body. Rejects with `bad_request`. */
export function lookAhead(bytes: Buffer, bounds: JsonBounds): Promise<void> | undefined {
  return bytes.length <= pieceBytes ? undefined : lookInPieces(bytes, bounds)
}

async function lookInPieces(bytes: Buffer, bounds: JsonBounds): Promise<void> {
  const scan = new JsonScan(bytes, bounds)
  let surrogates = 0
  for (let from = 0, isDone = false; !isDone; from = scan.at) {
    await turns.next()
    isDone = scan.to(scan.at + pieceBytes, pieceLooksMax)
    surrogates += surrogatesIn(bytes, from, scan.at)
    if (surrogates > surrogatesMax) throw tooManySurrogates()
  }
  let text: string | null = null
  if (scan.wide === null) {
    const decoder = new StringDecoder('utf8')
    text = ''
    for (let offset = 0; offset < bytes.length; offset += textPieceBytes) {
      await turns.next()
      text += decoder.write(bytes.subarray(offset, offset + textPieceBytes))
    }
  }
  seen.set(bytes, { values: scan.values, wide: scan.wide, text })
}

/** Returns how many escapes of surrogates begin in a part of a body. */
function surrogatesIn(bytes: Buffer, from: number, to: number): number {
  const part = bytes.subarray(from, to)
  let count = 0
  for (const start of surrogateStarts) for (let at = part.indexOf(start); at !== -1; at = part.indexOf(start, at + start.length)) count++
  return count
}

const surrogateStarts = [Buffer.from('\\ud'), Buffer.from('\\uD')]

const tooManySurrogates = (): GatewayError =>
  fail('bad_request', { message: `The body has more than ${surrogatesMax} escapes of surrogates (\\ud800 to \\udfff). Send the characters themselves.` })

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
  if (bytes.length > heavyBytes) return true
  return look(bytes, bounds).values > lightValuesMax
}

function look(bytes: Buffer, bounds: JsonBounds): Seen {
  const known = seen.get(bytes)
  if (known !== undefined) return known
  const scan = new JsonScan(bytes, bounds)
  scan.to(bytes.length)
  const found = { values: scan.values, wide: scan.wide, text: null }
  if (bytes.length > keptScanBytes) seen.set(bytes, found)
  return found
}

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
  if (found.wide === null) return JSON.parse(takeText(bytes, found))
  const { text, exact } = withStandIns(bytes, found.wide)
  const value: unknown = JSON.parse(text)
  exactOf.set(bytes, exact)
  return value
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
export function parseBody(bytes: Buffer, bounds: JsonBounds): unknown {
  return wellFormed(() => parseJson(bytes, bounds))
}

/** Returns the result of `parse`. Throws `bad_request` if the text is not JSON. */
export function wellFormed(parse: () => unknown, message = 'The body is not valid JSON.'): unknown {
  try {
    return parse()
  } catch (cause) {
    throw cause instanceof SyntaxError ? fail('bad_request', { message, cause }) : cause
  }
}
