import type { DigitRoom, ExactNumbers } from '../wire/json/exact-numbers.ts'

/** A longer text has its numbers put back in pieces of about this length. */
export const exactPieceLength = 1024 * 1024

/**
 * What is written, with the digits that came, as bytes. A piece of the text is done in each turn, because a search through 30 MB takes the time of
 * all callers. Throws `bad_request` when the digits need more than a `room` that is given.
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

/** The first place from there on that is inside of no number and of no character. */
function cutBehind(written: Buffer | string, from: number): number {
  let at = from
  while (at < written.length && isInside(typeof written === 'string' ? written.charCodeAt(at) : (written[at] as number), typeof written === 'string')) at++
  return Math.min(at, written.length)
}

/** `+`, `-`, `.`, digits, `E` and `e`; the second half of a character of two; bytes of a character behind its first. */
function isInside(unit: number, isText: boolean): boolean {
  if (unit >= 48 && unit <= 57) return true
  if (unit === 43 || unit === 45 || unit === 46 || unit === 69 || unit === 101) return true
  return isText ? unit >= 0xdc00 && unit <= 0xdfff : unit >= 0x80 && unit <= 0xbf
}
