/** What the counting of all forms of recordings goes by. */

/** What was counted. */
export interface CountedSound {
  readonly seconds: number
  /** Sound alone, in a form that has few bytes a second. */
  readonly isCompact: boolean
}

/** Encoders pad: a count that is longer than its header by less than this says the same. */
const paddingSeconds = 0.25

/** The header's figure, unless there is more sound than it says. */
export const notBelow = (headerSeconds: number, countedSeconds: number): number =>
  countedSeconds > headerSeconds + paddingSeconds ? countedSeconds : headerSeconds

/** Rates of sampling that recordings of speech and music have, in Hz. */
export const isPlausibleRate = (rate: number): boolean => rate >= 7350 && rate <= 192_000

/** Where the content begins after tags of ID3v2, which players pass over. */
export function afterTags(bytes: Buffer): number {
  let at = 0
  while (at + 10 <= bytes.length && bytes.toString('latin1', at, at + 3) === 'ID3') {
    const length = [6, 7, 8, 9].reduce((sum, offset) => sum * 128 + ((bytes[at + offset] ?? 0) & 0x7f), 0)
    at += 10 + length
  }
  return Math.min(at, bytes.length)
}
