import type { DigitRoom, ExactNumbers } from '../wire/json/exact-numbers.ts'
import { pieceTurn } from '../wire/json/json-body.ts'

/** A text longer than this number of characters or bytes is restored in pieces of about this length. */
export const exactPieceLength = 256 * 1024

/** Does the work in a turn of the event loop in which no other piece of a body is read or restored. */
export const inPieceTurn = <T>(work: () => T): Promise<T> => pieceTurn().then(work)

/**
 * Returns `written` as bytes with the digits that the caller sent. Each turn restores one piece of the text, because a search through 30 MB
 * would block all other callers. Throws `bad_request` when the digits need more than the `room` that is given.
 */
export async function restoredInPieces(
  written: Buffer | string,
  exact: ExactNumbers,
  inTurn: <T>(work: () => T) => Promise<T>,
  room?: DigitRoom,
): Promise<Buffer> {
  const parts: Buffer[] = []
  for (let from = 0; from < written.length; ) {
    const end = cutBehind(written, from + exactPieceLength)
    const start = from
    parts.push(
      await inTurn(() =>
        typeof written === 'string' ? Buffer.from(exact.restored(written.slice(start, end), room)) : exact.restored(written.subarray(start, end), room),
      ),
    )
    from = end
  }
  return Buffer.concat(parts)
}

/** A replacement has at most about 25 characters. In a longer run of digits and signs there is none, and a cut may be anywhere. */
const runMaxChars = 1024

/** Returns the first position at or after `from` that splits neither a replacement nor a character. */
function cutBehind(written: Buffer | string, from: number): number {
  const isText = typeof written === 'string'
  let at = from
  for (; at < written.length; at++) {
    const unit = isText ? written.charCodeAt(at) : (written[at] as number)
    if (!isAfterFirst(unit, isText) && (!isOfNumber(unit) || at - from >= runMaxChars)) break
  }
  return Math.min(at, written.length)
}

/** Returns true for `+`, `-`, `.`, digits, `E` and `e`. */
const isOfNumber = (unit: number): boolean => (unit >= 48 && unit <= 57) || unit === 43 || unit === 45 || unit === 46 || unit === 69 || unit === 101

/** Returns true for the second half of a surrogate pair, and for a UTF-8 byte after a character's first. */
const isAfterFirst = (unit: number, isText: boolean): boolean => (isText ? unit >= 0xdc00 && unit <= 0xdfff : unit >= 0x80 && unit <= 0xbf)
