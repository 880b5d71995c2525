/** WAV and AIFF: uncompressed samples, whose number of bytes gives the length. */
import { type CountedSound, isPlausibleRate } from './bounds.ts'
import { countMpegFrames } from './mpeg.ts'

/** WAV formats with plain samples: integers, floating-point numbers, and the one-byte A-law and µ-law samples of telephony. */
const plainFormats: readonly number[] = [1, 3, 6, 7]
const adpcmFormats: readonly number[] = [2, 0x11]
const mp3Format = 0x55
/** This format number says that the real format is in a longer description. */
const extendedFormat = 0xfffe
const channelsMax = 32
const bitsMax = 64

interface Chunk {
  readonly id: string
  readonly start: number
  /** The end offset. It is never after the end of the file. */
  readonly end: number
}

export function countSamples(bytes: Buffer): CountedSound | null {
  if (bytes.length < 12) return null
  const form = bytes.toString('latin1', 0, 4)
  const kind = bytes.toString('latin1', 8, 12)
  if ((form === 'RIFF' || form === 'RF64') && kind === 'WAVE') return countWav(bytes)
  return form === 'FORM' && (kind === 'AIFF' || kind === 'AIFC') ? countAiff(bytes) : null
}

const chunkName = /^[\x20-\x7e]{4}$/

/**
 * Returns the chunks of a file. A recorder that does not know the length of the sound writes 0 or the maximum value. The sound then continues to the end of
 * the file. Bytes after a chunk also count as sound if they are not another chunk.
 */
function* chunksOf(bytes: Buffer, isLittle: boolean, soundId: string): Generator<Chunk> {
  for (let at = 12; at + 8 <= bytes.length; ) {
    const name = bytes.toString('latin1', at, at + 4)
    if (!chunkName.test(name)) {
      yield { id: soundId, start: at, end: bytes.length }
      return
    }
    const said = isLittle ? bytes.readUInt32LE(at + 4) : bytes.readUInt32BE(at + 4)
    const start = at + 8
    const isOpen = name === soundId && (said === 0 || said === 0xffffffff)
    const end = isOpen ? bytes.length : Math.min(bytes.length, start + said)
    yield { id: name, start, end }
    at = end + (end % 2)
  }
}

function countWav(bytes: Buffer): CountedSound | null {
  let format: Buffer | null = null
  let soundBytes = 0
  let mp3Seconds = 0
  for (const { id, start, end } of chunksOf(bytes, true, 'data')) {
    if (id === 'fmt ' && format === null && end - start >= 16) format = bytes.subarray(start, end)
    if (id !== 'data') continue
    soundBytes += end - start
    if (format !== null && tagOf(format) === mp3Format) mp3Seconds += countMpegFrames(bytes.subarray(start, end))?.seconds ?? 0
  }
  if (format === null || soundBytes === 0) return null
  if (tagOf(format) === mp3Format) return mp3Seconds === 0 ? null : { seconds: mp3Seconds, isCompact: true }
  const rate = wavBytesPerSecond(format)
  return rate === null ? null : { seconds: soundBytes / rate, isCompact: false }
}

const tagOf = (format: Buffer): number => {
  const tag = format.readUInt16LE(0)
  return tag === extendedFormat && format.length >= 26 ? format.readUInt16LE(24) : tag
}

/** Calculates bytes a second from the sample rate, the channels and the bits, as decoders do. Like decoders, it ignores the byte rate in the header. */
function wavBytesPerSecond(format: Buffer): number | null {
  const channels = format.readUInt16LE(2)
  const rate = format.readUInt32LE(4)
  const block = format.readUInt16LE(12)
  const bits = format.readUInt16LE(14)
  if (!isPlausibleRate(rate) || channels < 1 || channels > channelsMax) return null
  const tag = tagOf(format)
  if (adpcmFormats.includes(tag)) return (rate * channels) / 2
  if (!plainFormats.includes(tag) || bits < 8 || bits > bitsMax || block !== channels * Math.ceil(bits / 8)) return null
  return rate * block
}

function countAiff(bytes: Buffer): CountedSound | null {
  let rate: number | null = null
  let soundBytes = 0
  for (const { id, start, end } of chunksOf(bytes, false, 'SSND')) {
    if (id === 'COMM' && rate === null) rate = aiffBytesPerSecond(bytes.subarray(start, end))
    if (id === 'SSND') soundBytes += Math.max(0, end - start - 8)
  }
  return rate === null || soundBytes === 0 ? null : { seconds: soundBytes / rate, isCompact: false }
}

/** Accepts only uncompressed samples, because other formats of AIFF-C are not supported here. */
function aiffBytesPerSecond(common: Buffer): number | null {
  if (common.length < 18) return null
  const channels = common.readUInt16BE(0)
  const bits = common.readUInt16BE(6)
  // A floating-point number of 80 bits: 15 bits of exponent and a mantissa, of which the upper 32 bits are enough.
  const rate = common.readUInt32BE(10) * 2 ** (common.readUInt16BE(8) - 16_383 - 31)
  const isPlain = common.length < 22 || ['NONE', 'sowt', 'twos', 'fl32', 'FL32'].includes(common.toString('latin1', 18, 22))
  if (!isPlain || !isPlausibleRate(rate) || channels < 1 || channels > channelsMax || bits < 8 || bits > bitsMax) return null
  return rate * channels * Math.ceil(bits / 8)
}
