/** Reads lines from pieces of bytes. It keeps one incomplete line, which has a bound. */
import { fail } from '../../../platform/errors.ts'
import { BodyPieces } from '../../../platform/loop/body-pieces.ts'

const newline = 10
const carriageReturn = 13

/** A line without its end, and its number from 1. */
export interface Line {
  readonly bytes: Buffer
  readonly number: number
}

/** Returns the lines that have something in them. Throws `bad_request` for a line that is longer than `maxBytes`. */
export async function* linesOf(pieces: AsyncIterable<Uint8Array>, maxBytes: number): AsyncGenerator<Line> {
  let held = new BodyPieces()
  let heldBytes = 0
  let number = 0
  const line = (rest: Buffer): Line | null => {
    number++
    held.add(rest)
    const bytes = trimmed(held.joined())
    held = new BodyPieces()
    heldBytes = 0
    return bytes.length === 0 ? null : { bytes, number }
  }
  for await (const piece of pieces) {
    const bytes = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength)
    let from = 0
    for (let at = bytes.indexOf(newline); at !== -1; at = bytes.indexOf(newline, from)) {
      if (heldBytes + at - from > maxBytes) throw tooLong(number + 1, maxBytes)
      const made = line(bytes.subarray(from, at))
      from = at + 1
      if (made !== null) yield made
    }
    if (from === bytes.length) continue
    heldBytes += bytes.length - from
    if (heldBytes > maxBytes) throw tooLong(number + 1, maxBytes)
    // A copy, because a small rest must not keep its whole piece.
    held.add(Buffer.from(bytes.subarray(from)))
  }
  const last = heldBytes === 0 ? null : line(Buffer.alloc(0))
  if (last !== null) yield last
}

const trimmed = (bytes: Buffer): Buffer => (bytes[bytes.length - 1] === carriageReturn ? bytes.subarray(0, -1) : bytes)

const tooLong = (number: number, maxBytes: number): Error => fail('bad_request', { message: `Line ${number} is longer than ${maxBytes} bytes.` })
