import type { DigitRoom, ExactNumbers } from '../wire/json/exact-numbers.ts'

/** A text longer than this number of characters or bytes is restored in pieces of about this length. */
export const exactPieceLength = 1024 * 1024

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

/** Returns the first position at or after `from` that splits neither a number nor a character. */
function cutBehind(written: Buffer | string, from: number): number {
  let at = from
  while (at < written.length && isInside(typeof written === 'string' ? written.charCodeAt(at) : (written[at] as number), typeof written === 'string')) at++
  return Math.min(at, written.length)
}

/** Returns true for `+`, `-`, `.`, digits, `E` and `e`, for the second half of a surrogate pair, and for a UTF-8 byte after a character's first. */
function isInside(unit: number, isText: boolean): boolean {
  if (unit >= 48 && unit <= 57) return true
  if (unit === 43 || unit === 45 || unit === 46 || unit === 69 || unit === 101) return true
  return isText ? unit >= 0xdc00 && unit <= 0xdfff : unit >= 0x80 && unit <= 0xbf
}
