/** What AAC says of itself, in containers: how long each of its frames lasts. */
import { isPlausibleRate } from './bounds.ts'
import { aacRates } from './mpeg.ts'

const samplesOfFrame = 1024
/** Kinds of AAC with frames of half the length. */
const lowDelay: readonly number[] = [23, 39]
/** Kinds whose frames have other lengths, which are written elsewhere. */
const unknown: readonly number[] = [36, 42]

/** Seconds of a frame by the AudioSpecificConfig (ISO 14496-3, 1.6.2.1); null: it says nothing that is known here. */
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

/** The same of a stream of which only the rate is known. */
export const plainAacFrameSeconds = (rate: number): number | null => (isPlausibleRate(rate) ? samplesOfFrame / rate : null)
