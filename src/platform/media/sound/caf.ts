/** CAF, Apple's container: AMR by its frames, and uncompressed samples by their bytes. */
import { amrSeconds } from './amr.ts'
import { type CountedSound, isPlausibleRate } from './bounds.ts'

/** Bytes of the file's head, and of the head of a chunk. */
const headBytes = 8
const chunkHeadBytes = 12
/** The number of edits, before the sound in its chunk. */
const editBytes = 4
const channelsMax = 32
const bitsMax = 64

/** Counts the sound of a file. Null when it is not such a file, or when its codec is another one. */
export function countCaf(bytes: Buffer): CountedSound | null {
  if (bytes.length < headBytes || bytes.toString('latin1', 0, 4) !== 'caff') return null
  let description: Buffer | null = null
  let sound: Buffer | null = null
  for (let at = headBytes; at + chunkHeadBytes <= bytes.length; ) {
    const type = bytes.toString('latin1', at, at + 4)
    const said = bytes.readBigInt64BE(at + 4)
    const start = at + chunkHeadBytes
    // A recorder that does not know the length writes -1, and the sound then continues to the end of the file.
    const end = said < 0n || said > BigInt(bytes.length - start) ? bytes.length : start + Number(said)
    if (type === 'desc' && description === null && end - start >= 32) description = bytes.subarray(start, end)
    if (type === 'data' && sound === null) sound = bytes.subarray(Math.min(end, start + editBytes), end)
    at = end
  }
  return description === null || sound === null ? null : countSoundOf(description, sound)
}

function countSoundOf(description: Buffer, sound: Buffer): CountedSound | null {
  switch (description.toString('latin1', 8, 12)) {
    case 'samr':
      return { seconds: amrSeconds(sound, false), isCompact: true }
    case 'sawb':
      return { seconds: amrSeconds(sound, true), isCompact: true }
    case 'lpcm':
      return plain(sound.length, description, Math.ceil(description.readUInt32BE(28) / 8))
    case 'ulaw':
    case 'alaw':
      return plain(sound.length, description, 1)
    default:
      return null
  }
}

function plain(soundBytes: number, description: Buffer, sampleBytes: number): CountedSound | null {
  const rate = description.readDoubleBE(0)
  const channels = description.readUInt32BE(24)
  const isPlausible = isPlausibleRate(rate) && channels >= 1 && channels <= channelsMax && sampleBytes >= 1 && sampleBytes <= bitsMax / 8
  return isPlausible ? { seconds: soundBytes / (rate * channels * sampleBytes), isCompact: false } : null
}
