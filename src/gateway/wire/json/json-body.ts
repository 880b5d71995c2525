/**
 * The one place that makes values of JSON bodies: within bounds, and without changing a number that a double cannot hold. Large bodies are
 * looked at in pieces first, so that the event loop serves others in between.
 */
import { StringDecoder } from 'node:string_decoder'
import { fail } from '../../../platform/errors.ts'
import { type ExactNumbers, withStandIns } from './exact-numbers.ts'
import { type JsonBounds, JsonScan } from './json-scan.ts'

/** A longer body is looked at in pieces of this length. */
export const pieceBytes = 256 * 1024
/** Most numbers of a piece that take a closer look, some microseconds each. */
const pieceLooksMax = 2000
/** Text is made of bytes in pieces of this length: that costs little whatever they are. */
const textPieceBytes = 1024 * 1024
/** A longer body is heavy whatever it holds. */
const heavyBytes = 1024 * 1024
/** A shorter body is light whatever it holds. */
const lightBytes = 16 * 1024
/** A body with more values is heavy. */
const lightValuesMax = 10_000

/** What is known of a body before it is parsed. */
interface Seen {
  readonly values: number
  readonly wide: readonly number[] | null
  /** The body as text, until it is parsed. */
  text: string | null
}

const seen = new WeakMap<Buffer, Seen>()
const exactOf = new WeakMap<Buffer, ExactNumbers>()

/** Checks a large body in pieces, between which the event loop turns; undefined for a small body. Rejects with `bad_request`. */
export function lookAhead(bytes: Buffer, bounds: JsonBounds): Promise<void> | undefined {
  return bytes.length <= pieceBytes ? undefined : lookInPieces(bytes, bounds)
}

async function lookInPieces(bytes: Buffer, bounds: JsonBounds): Promise<void> {
  const scan = new JsonScan(bytes, bounds)
  do await turns.next()
  while (!scan.to(scan.at + pieceBytes, pieceLooksMax))
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

/** Of all bodies of the process one piece is looked at in a turn of the event loop, in the order of asking: many that come concurrently make no long turn. */
class PieceTurns {
  readonly #waiting: (() => void)[] = []

  /** Resolves in a turn of the event loop that nobody else has. */
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

/** Resolves in a turn of the event loop in which no other large body or reply is looked at. */
export const pieceTurn = (): Promise<void> => turns.next()

/** Whether work on a body can take long enough for others to notice. Throws `bad_request`. */
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
  if (bytes.length > lightBytes) seen.set(bytes, found)
  return found
}

/** The value of a body. Numbers come as JSON.parse reads them. Throws `bad_request` that names the bound, and SyntaxError. */
export function parseJson(bytes: Buffer, bounds: JsonBounds): unknown {
  const found = look(bytes, bounds)
  return JSON.parse(takeText(bytes, found))
}

/** The same with numbers in place of those that a double cannot hold; `exactNumbersOf` the bytes puts these back into what is written. */
export function parseExactJson(bytes: Buffer, bounds: JsonBounds): unknown {
  const found = look(bytes, bounds)
  if (found.wide === null) return JSON.parse(takeText(bytes, found))
  const { text, exact } = withStandIns(bytes, found.wide)
  const value: unknown = JSON.parse(text)
  exactOf.set(bytes, exact)
  return value
}

/** The replaced numbers of a body that `parseExactJson` has read; undefined when there are none. */
export const exactNumbersOf = (bytes: Buffer): ExactNumbers | undefined => exactOf.get(bytes)

/** Characters of a body's numbers that are in no value made from it, because each has a shorter replacement. */
export const unseenDigitsOf = (bytes: Buffer): number => exactOf.get(bytes)?.extraChars ?? 0

/** A large text is let go of as soon as it is read. */
function takeText(bytes: Buffer, found: Seen): string {
  const text = found.text ?? bytes.toString('utf8')
  found.text = null
  return text
}

/** The body as a value. Throws `bad_request`. */
export function parseBody(bytes: Buffer, bounds: JsonBounds): unknown {
  return wellFormed(() => parseJson(bytes, bounds))
}

/** What `parse` gives; a text that is no JSON is `bad_request`. */
export function wellFormed(parse: () => unknown, message = 'The body is not valid JSON.'): unknown {
  try {
    return parse()
  } catch (cause) {
    throw cause instanceof SyntaxError ? fail('bad_request', { message, cause }) : cause
  }
}
