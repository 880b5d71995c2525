/**
 * Reads the elements of the list `requests` of a JSON object as they arrive, so that a body of hundreds of megabytes needs the memory of one element. The
 * object may have no other member.
 */
import { fail } from '../../../platform/errors.ts'
import type { Line } from './line-reader.ts'

const [quote, backslash, comma, openBrace, closeBrace, openBracket, closeBracket] = [34, 92, 44, 123, 125, 91, 93] as const
const headMaxBytes = 256

type Place = 'head' | 'before' | 'element' | 'after' | 'close' | 'tail'

/**
 * Returns the elements with their places from 1. Throws `bad_request` for a body of another form, and for an element that is longer than `maxBytes`. What is
 * inside an element is not checked.
 */
export async function* requestElements(pieces: AsyncIterable<Uint8Array>, maxBytes: number): AsyncGenerator<Line> {
  const scan = new ElementScan(maxBytes)
  for await (const piece of pieces) yield* scan.elementsIn(Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength))
  scan.end()
}

/** Finds the elements in pieces of the body. */
class ElementScan {
  readonly #maxBytes: number
  #place: Place = 'head'
  #head = ''
  #held: Buffer[] = []
  #heldBytes = 0
  #depth = 0
  #isInString = false
  #isEscaped = false
  #number = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  *elementsIn(bytes: Buffer): Generator<Line> {
    let from = 0
    for (let at = 0; at < bytes.length; at++) {
      const byte = bytes[at] as number
      switch (this.#place) {
        case 'head':
          this.#readHead(byte)
          break
        case 'before':
        case 'after':
          if (this.#readBetween(byte)) from = at
          break
        case 'element':
          at = this.#skipText(bytes, at)
          if (at < bytes.length && this.#readElement(bytes[at] as number)) {
            yield this.#element(bytes.subarray(from, at + 1))
            this.#place = 'after'
          }
          break
        case 'close':
          if (byte === closeBrace) this.#place = 'tail'
          else if (!isWhite(byte)) throw malformed()
          break
        case 'tail':
          if (!isWhite(byte)) throw malformed()
      }
    }
    if (this.#place === 'element') this.#hold(Buffer.from(bytes.subarray(from)))
  }

  /** The body is complete. */
  end(): void {
    if (this.#place !== 'tail') throw malformed()
  }

  /** Returns the offset of the next byte that may end a string or change the depth. Long texts are searched natively. */
  #skipText(bytes: Buffer, from: number): number {
    if (!this.#isInString || this.#isEscaped) return from
    for (let at = from; at < bytes.length; at++) if (bytes[at] === quote || bytes[at] === backslash) return at
    return bytes.length
  }

  #readHead(byte: number): void {
    if (isWhite(byte)) return
    this.#head += String.fromCharCode(byte)
    if (this.#head.length > headMaxBytes) throw malformed()
    if (byte !== openBracket) return
    if (this.#head !== '{"requests":[') throw malformed()
    this.#place = 'before'
  }

  /** Returns true when an element begins with this byte. */
  #readBetween(byte: number): boolean {
    if (isWhite(byte)) return false
    const isFirst = this.#place === 'before' && this.#number === 0
    if (byte === closeBracket && (isFirst || this.#place === 'after')) this.#place = 'close'
    else if (byte === comma && this.#place === 'after') this.#place = 'before'
    else if (byte === openBrace && this.#place === 'before') {
      this.#place = 'element'
      this.#depth = 1
      this.#number++
      return true
    } else throw malformed()
    return false
  }

  /** Returns true when the element ends with this byte. */
  #readElement(byte: number): boolean {
    if (this.#isEscaped) this.#isEscaped = false
    else if (this.#isInString) {
      if (byte === backslash) this.#isEscaped = true
      else if (byte === quote) this.#isInString = false
    } else if (byte === quote) this.#isInString = true
    else if (byte === openBrace || byte === openBracket) this.#depth++
    else if (byte === closeBrace || byte === closeBracket) this.#depth--
    return this.#depth === 0
  }

  #element(last: Buffer): Line {
    this.#hold(last)
    const [first] = this.#held
    const bytes = this.#held.length === 1 && first !== undefined ? first : Buffer.concat(this.#held)
    this.#held = []
    this.#heldBytes = 0
    return { bytes, number: this.#number }
  }

  #hold(part: Buffer): void {
    this.#heldBytes += part.length
    if (this.#heldBytes > this.#maxBytes) throw fail('bad_request', { message: `Request ${this.#number} is longer than ${this.#maxBytes} bytes.` })
    this.#held.push(part)
  }
}

const isWhite = (byte: number): boolean => byte === 32 || byte === 10 || byte === 13 || byte === 9

const malformed = (): Error => fail('bad_request', { message: 'The body must be one JSON object with the list "requests" and nothing else.' })
