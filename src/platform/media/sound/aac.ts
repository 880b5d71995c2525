/** Calculates the duration of an AAC frame in a container file. */
import { isPlausibleRate } from './bounds.ts'
import { aacRates } from './mpeg.ts'

/** The longest frame: 6,144 bits for each of eight channels, and room for the tables of a container. */
export const aacFrameMaxBytes = 8192
const samplesOfFrame = 1024
/** Object types of AAC with frames of half the length. */
const lowDelay: readonly number[] = [23, 39]
/** Object types whose frame length is not known here. */
const unknown: readonly number[] = [36, 42]

/** Returns the seconds of a frame from an AudioSpecificConfig (ISO 14496-3, 1.6.2.1). Null when it is too short or of an unknown type. */
export function aacFrameSeconds(config: Uint8Array): number | null {
  let bit = 0
  const take = (width: number): number => {
    let value = 0
    for (; width > 0; width--, bit++) value = value * 2 + (((config[bit >> 3] ?? 0) >> (7 - (bit & 7))) & 1)
    return value
  }
  if (config.length < 2) return null
  const short = take(5)
  const kind = short === 31 ? 32 + take(6) : short
  const index = take(4)
  const rate = index === 15 ? take(24) : aacRates[index]
  if (rate === undefined || !isPlausibleRate(rate) || unknown.includes(kind)) return null
  return samplesOfFrame / (lowDelay.includes(kind) ? 2 : 1) / rate
}

/** Returns the seconds of a frame when only the sample rate is known. Null for an implausible rate. */
export const plainAacFrameSeconds = (rate: number): number | null => (isPlausibleRate(rate) ? samplesOfFrame / rate : null)
