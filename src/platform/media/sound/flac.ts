/** Measures FLAC. The first block states the number of samples of the whole file, and each frame states its own number. */
import { afterTags, type CountedSound, isPlausibleRate, notBelow } from './bounds.ts'

const rates = [0, 88_200, 176_400, 192_000, 8000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 96_000] as const
/** Units in Hz of a sample rate that is written in a frame's head, indexed by the rate code minus 12. */
const rateUnits = [1000, 1, 10] as const
/** Longest head of a frame. */
const headMaxBytes = 16

export function countFlac(bytes: Buffer): CountedSound | null {
  let at = afterTags(bytes)
  if (bytes.toString('latin1', at, at + 4) !== 'fLaC') return null
  at += 4
  let rate = 0
  let said = 0
  for (let isLast = false; !isLast && at + 4 <= bytes.length; ) {
    const head = bytes[at] ?? 0
    isLast = head >= 0x80
    if ((head & 0x7f) === 0 && at + 22 <= bytes.length) {
      const packed = bytes.readBigUInt64BE(at + 14)
      rate = Number(packed >> 44n)
      said = Number(packed & 0xfffffffffn)
    }
    at += 4 + bytes.readUIntBE(at + 1, 3)
  }
  if (!isPlausibleRate(rate)) return null
  return { seconds: notBelow(said / rate, flacSeconds(bytes.subarray(at), rate)), isCompact: false }
}

/** Returns the seconds of all frames in these bytes. `rate` is the sample rate of the stream. */
export function flacSeconds(bytes: Buffer, rate: number): number {
  let seconds = 0
  for (let at = bytes.indexOf(0xff); at >= 0; at = bytes.indexOf(0xff, at)) {
    const frame = flacFrameAt(bytes, at, rate)
    seconds += frame?.seconds ?? 0
    at += frame?.headBytes ?? 1
  }
  return seconds
}

/**
 * Returns the frame whose head is at this position. Null when there is no head with a correct checksum. `rate` is the sample rate of the
 * stream.
 */
function flacFrameAt(bytes: Buffer, at: number, rate: number): { readonly seconds: number; readonly headBytes: number } | null {
  if (at + 6 > bytes.length || bytes[at] !== 0xff || ((bytes[at + 1] ?? 0) & 0xfe) !== 0xf8) return null
  const sizes = bytes[at + 2] ?? 0
  const sizeCode = sizes >> 4
  const rateCode = sizes & 15
  if (sizeCode === 0 || rateCode === 15 || ((bytes[at + 3] ?? 0) & 1) !== 0) return null
  // The number of the frame, encoded like a character in UTF-8.
  const lead = bytes[at + 4] ?? 0
  const numberBytes = lead < 0x80 ? 1 : Math.clz32(~(lead << 24))
  if (numberBytes > 7 || (lead >= 0x80 && numberBytes < 2)) return null
  const sizeAt = at + 4 + numberBytes
  const sizeBytes = sizeCode === 6 ? 1 : sizeCode === 7 ? 2 : 0
  const rateAt = sizeAt + sizeBytes
  const rateBytes = rateCode === 12 ? 1 : rateCode > 12 ? 2 : 0
  const end = rateAt + rateBytes
  if (end >= bytes.length || end - at > headMaxBytes || checksum(bytes, at, end) !== bytes[end]) return null
  const samples = sizeCode === 1 ? 192 : sizeCode < 6 ? 576 * 2 ** (sizeCode - 2) : sizeCode < 8 ? bytes.readUIntBE(sizeAt, sizeBytes) + 1 : 2 ** sizeCode
  const own = rateCode < 12 ? (rates[rateCode] ?? 0) : bytes.readUIntBE(rateAt, rateBytes) * (rateUnits[rateCode - 12] ?? 0)
  return { seconds: isPlausibleRate(own) ? samples / own : samples / rate, headBytes: end + 1 - at }
}

function checksum(bytes: Buffer, from: number, to: number): number {
  let sum = 0
  for (let at = from; at < to; at++) {
    sum ^= bytes[at] ?? 0
    for (let bit = 0; bit < 8; bit++) sum = sum & 0x80 ? ((sum << 1) ^ 0x07) & 0xff : sum << 1
  }
  return sum
}
