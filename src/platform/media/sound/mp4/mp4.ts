/**
 * MP4, M4A, MOV and 3GP. With AAC, MP3 or ALAC the tables state the number of frames, and the codec the length of each. With AMR or Opus each sample
 * says how long it is.
 */

import { aacFrameMaxBytes, aacFrameSeconds, plainAacFrameSeconds } from '../aac.ts'
import { amrSeconds } from '../amr.ts'
import { type CountedSound, isPlausibleRate, notBelow } from '../bounds.ts'
import { mpegPacketSeconds } from '../mpeg.ts'
import { opusSeconds } from '../packets.ts'
import { readTable, type SampleTables, samplesOf } from './mp4-samples.ts'

/** Boxes whose content is read. All other boxes are skipped. */
const containers: readonly string[] = ['moov', 'trak', 'mdia', 'minf', 'stbl', 'moof', 'traf', 'mvex']
const firstBoxes: readonly string[] = ['ftyp', 'moov', 'mdat', 'wide', 'free', 'skip', 'styp', 'moof']
const tracksMax = 64

/** The properties of a codec: the length of each frame, or of one sample by its bytes. */
interface Codec {
  readonly frameSeconds: number
  readonly sampleSeconds?: (sample: Buffer) => number
  /** True for a format with few bytes a second. */
  readonly isCompact: boolean
}

interface Track {
  id: number
  kind: 'sound' | 'film' | 'other'
  /** From the first description of the track. Undefined before it has been read, null for an unknown codec. */
  codec: Codec | null | undefined
  frames: number
  readonly tables: SampleTables
  /** The length in the track's header. */
  seconds: number
}

/** Counts the sound of a file. Null when it is not such a file or its sound cannot be counted. Reads the boxes in one pass. */
export function countMp4(bytes: Buffer): CountedSound | null {
  if (bytes.length < 8 || !firstBoxes.includes(bytes.toString('latin1', 4, 8))) return null
  const tracks: Track[] = []
  /** Number of frames in fragments, by track id. */
  const fragments = new Map<number, number>()
  let fragment = 0
  for (let at = 0; at + 8 <= bytes.length; ) {
    const type = bytes.toString('latin1', at + 4, at + 8)
    const short = bytes.readUInt32BE(at)
    const isLong = short === 1 && at + 16 <= bytes.length
    const length = isLong ? Number(bytes.readBigUInt64BE(at + 8)) : short === 0 ? bytes.length - at : short
    const start = at + (isLong ? 16 : 8)
    if (length < start - at) break
    const content = bytes.subarray(start, at + length)
    const track = tracks.at(-1)
    if (type === 'trak') {
      if (tracks.length >= tracksMax) return null
      tracks.push({ id: 0, kind: 'other', codec: undefined, frames: 0, tables: { sizes: null, perChunk: null, offsets: null, isWide: false }, seconds: 0 })
    } else if (type === 'tfhd' && content.length >= 8) fragment = content.readUInt32BE(4)
    else if (type === 'trun' && content.length >= 8) fragments.set(fragment, (fragments.get(fragment) ?? 0) + content.readUInt32BE(4))
    else if (track !== undefined) readTrack(track, type, content)
    at = containers.includes(type) ? start : at + length
  }
  const sound = tracks.filter(({ kind }) => kind === 'sound')
  let longest = 0
  let isCompact = !tracks.some(({ kind }) => kind === 'film')
  for (const { id, codec, frames, tables, seconds } of sound) {
    if (codec === undefined || codec === null) return null
    const inFragments = fragments.get(id) ?? 0
    let counted = (frames + inFragments) * codec.frameSeconds
    if (codec.sampleSeconds !== undefined) {
      // The samples of fragments are not in the tables.
      if (inFragments > 0) return null
      for (const sample of samplesOf(bytes, tables)) {
        if (sample === null) return null
        counted += codec.sampleSeconds(sample)
      }
      if (counted === 0) return null
    }
    longest = Math.max(longest, notBelow(seconds, counted))
    isCompact &&= codec.isCompact
    // A sample that is longer than any frame holds several frames, which a decoder plays.
    if (isCompact && codec.sampleSeconds === undefined && bytes.length > (frames + inFragments) * aacFrameMaxBytes) return null
  }
  return sound.length === 0 ? null : { seconds: longest, isCompact }
}

function readTrack(track: Track, type: string, content: Buffer): void {
  const isWide = content[0] === 1
  readTable(track.tables, type, content)
  switch (type) {
    case 'tkhd':
      if (content.length >= (isWide ? 24 : 16)) track.id = content.readUInt32BE(isWide ? 20 : 12)
      return
    case 'hdlr': {
      const kind = content.toString('latin1', 8, 12)
      if (kind === 'soun') track.kind = 'sound'
      else if (kind === 'vide') track.kind = 'film'
      return
    }
    case 'mdhd':
      track.seconds = content.length >= (isWide ? 32 : 20) ? lengthOf(content, isWide) : 0
      return
    case 'stsz':
    case 'stz2':
      if (content.length >= 12) track.frames = Math.max(track.frames, content.readUInt32BE(8))
      return
    case 'stsd':
      if (track.codec === undefined) track.codec = codecOf(content)
  }
}

function lengthOf(header: Buffer, isWide: boolean): number {
  const scale = header.readUInt32BE(isWide ? 20 : 12)
  const length = isWide ? Number(header.readBigUInt64BE(24)) : header.readUInt32BE(16)
  // All ones means that the length is not known.
  return scale === 0 || length === 0xffffffff || length >= 2 ** 53 ? 0 : length / scale
}

/**
 * Reads the codec from the first description of a table. As in decoders, the description of the codec itself has priority over the description of the
 * container.
 */
function codecOf(table: Buffer): Codec | null {
  if (table.length < 8 + 36) return null
  const entry = table.subarray(8, 8 + Math.min(table.readUInt32BE(8), 65_536))
  if (entry.length < 36) return null
  const rate = entry.readUInt16BE(32)
  switch (entry.toString('latin1', 4, 8)) {
    case 'mp4a': {
      const at = entry.indexOf('esds', 36, 'latin1')
      return at < 0 ? compact(plainAacFrameSeconds(rate)) : describedCodec(entry.subarray(at + 8))
    }
    case '.mp3':
      return bySample(mpegPacketSeconds)
    case 'alac': {
      const at = entry.indexOf('alac', 36, 'latin1')
      if (at < 0 || at + 32 > entry.length) return null
      const own = entry.readUInt32BE(at + 28)
      return isPlausibleRate(own) ? { frameSeconds: entry.readUInt32BE(at + 8) / own, isCompact: false } : null
    }
    case 'samr':
      return bySample(sample => amrSeconds(sample, false))
    case 'sawb':
      return bySample(sample => amrSeconds(sample, true))
    case 'Opus':
      return bySample(opusSeconds)
    default:
      return null
  }
}

const bySample = (sampleSeconds: (sample: Buffer) => number): Codec => ({ frameSeconds: 0, sampleSeconds, isCompact: true })
const compact = (frameSeconds: number | null): Codec | null => (frameSeconds === null ? null : { frameSeconds, isCompact: true })
/** Object types of MP3 in a descriptor: MPEG 2 and MPEG 1 layer III. */
const mp3Types: readonly number[] = [0x69, 0x6b]
const aacTypes: readonly number[] = [0x40, 0x66, 0x67, 0x68]

/** Reads the codec from the descriptors of ISO 14496-1. Descriptor 3 contains 4, and 4 contains 5, which describes the codec. */
function describedCodec(descriptors: Buffer): Codec | null {
  let content: number | null = null
  for (let at = 0; at + 2 <= descriptors.length; ) {
    const tag = descriptors[at]
    let length = 0
    let start = at + 1
    for (let more = true; more && start < descriptors.length && start < at + 5; start++) {
      length = length * 128 + ((descriptors[start] ?? 0) & 0x7f)
      more = (descriptors[start] ?? 0) >= 0x80
    }
    if (tag === 3) {
      const flags = descriptors[start + 2] ?? 0
      const address = flags & 0x40 ? 1 + (descriptors[start + 3 + (flags & 0x80 ? 2 : 0)] ?? 0) : 0
      at = start + 3 + (flags & 0x80 ? 2 : 0) + address + (flags & 0x20 ? 2 : 0)
    } else if (tag === 4) {
      content = descriptors[start] ?? null
      if (content !== null && mp3Types.includes(content)) return bySample(mpegPacketSeconds)
      at = start + 13
    } else if (tag === 5 && content !== null && aacTypes.includes(content)) return compact(aacFrameSeconds(descriptors.subarray(start, start + length)))
    else at = start + length
  }
  return null
}
