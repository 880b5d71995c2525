/** Rules that the counting of all formats shares. */

/** The counted length of a recording. */
export interface CountedSound {
  readonly seconds: number
  /** True for sound only, in a format with few bytes a second. */
  readonly isCompact: boolean
}

/** Encoders add padding. If the counted length exceeds the header's value by less than this, the two count as equal. */
const paddingSeconds = 0.25

/** Returns the length in the header, or the counted length when it is clearly longer. */
export const notBelow = (headerSeconds: number, countedSeconds: number): number =>
  countedSeconds > headerSeconds + paddingSeconds ? countedSeconds : headerSeconds

/** Returns whether a sample rate in Hz is usual for speech or music. */
export const isPlausibleRate = (rate: number): boolean => rate >= 7350 && rate <= 192_000

/** Returns where the content begins after ID3v2 tags, which players skip. */
export function afterTags(bytes: Buffer): number {
  let at = 0
  while (isTag(bytes, at)) {
    const length = [6, 7, 8, 9].reduce((sum, offset) => sum * 128 + (bytes[at + offset] ?? 0), 0)
    at += 10 + length
  }
  return Math.min(at, bytes.length)
}

/** ID3v2: a version never has the byte 0xff, and each byte of the length is below 0x80. Players read other bytes as sound. */
function isTag(bytes: Buffer, at: number): boolean {
  if (at + 10 > bytes.length || bytes.toString('latin1', at, at + 3) !== 'ID3' || bytes[at + 3] === 0xff || bytes[at + 4] === 0xff) return false
  return [6, 7, 8, 9].every(offset => (bytes[at + offset] ?? 0) < 0x80)
}
