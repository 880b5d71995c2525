/**
 * How long a recording lasts by the sound that is in it. What its sender writes into a header may lengthen it and never shortens it.
 * Decision 0463 says why.
 */
import type { CountedSound } from './bounds.ts'
import { countFlac } from './flac.ts'
import { countMp4 } from './mp4.ts'
import { countMpeg } from './mpeg.ts'
import { countOgg } from './ogg.ts'
import { countSamples } from './samples.ts'
import { countWebm } from './webm.ts'

/** Null: the form is not one of these, or the sound in it cannot be counted. Reads each byte a few times at most and throws nothing. */
export function countSound(file: Uint8Array): CountedSound | null {
  const bytes = Buffer.from(file.buffer, file.byteOffset, file.byteLength)
  const counted = countSamples(bytes) ?? countOgg(bytes) ?? countFlac(bytes) ?? countWebm(bytes) ?? countMp4(bytes) ?? countMpeg(bytes)
  return counted === null || !Number.isFinite(counted.seconds) || counted.seconds <= 0 ? null : counted
}
