/** Measures a recording by the sound that it contains. A value in a header can make the result longer but never shorter. Decision 0463 gives the reasons. */
import { countAmr } from './amr.ts'
import type { CountedSound } from './bounds.ts'
import { countCaf } from './caf.ts'
import { countFlac } from './flac.ts'
import { countMp4 } from './mp4/mp4.ts'
import { countMpeg } from './mpeg.ts'
import { countOgg } from './ogg.ts'
import { countSamples } from './samples.ts'
import { countWebm } from './webm.ts'

/**
 * Returns the length of a recording. Null when the format is unknown or its sound cannot be counted. Reads each byte a few times at most
 * and never throws.
 */
export function countSound(file: Uint8Array): CountedSound | null {
  const bytes = Buffer.from(file.buffer, file.byteOffset, file.byteLength)
  const counted =
    countSamples(bytes) ?? countOgg(bytes) ?? countFlac(bytes) ?? countWebm(bytes) ?? countMp4(bytes) ?? countCaf(bytes) ?? countAmr(bytes) ?? countMpeg(bytes)
  return counted === null || !Number.isFinite(counted.seconds) || counted.seconds <= 0 ? null : counted
}
