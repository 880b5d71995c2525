/**
 * Computes the length of the sound in WebM and Matroska files. It adds up the packets, because each packet states its duration. The times of blocks also
 * give a length, but the sender may have invented them. A recording from a browser has no length in its header.
 */
import { aacFrameMaxBytes, aacFrameSeconds, plainAacFrameSeconds } from './aac.ts'
import { type CountedSound, isPlausibleRate, notBelow } from './bounds.ts'
import { flacSeconds } from './flac.ts'
import { mpegPacketSeconds } from './mpeg.ts'
import { opusSeconds, VorbisPackets } from './packets.ts'

const ids = {
  segment: 0x18538067,
  info: 0x1549a966,
  timestampScale: 0x2ad7b1,
  duration: 0x4489,
  tracks: 0x1654ae6b,
  track: 0xae,
  trackNumber: 0xd7,
  trackType: 0x83,
  codec: 0x86,
  codecPrivate: 0x63a2,
  audio: 0xe1,
  rate: 0xb5,
  channels: 0x9f,
  bits: 0x6264,
  encodings: 0x6d80,
  cluster: 0x1f43b675,
  timestamp: 0xe7,
  group: 0xa0,
  block: 0xa1,
  simpleBlock: 0xa3,
}
/** Elements whose content is read. All other elements are skipped. */
const containers: readonly number[] = [ids.segment, ids.info, ids.tracks, ids.track, ids.audio, ids.cluster, ids.group]
const magic = 0x1a45dfa3
const defaultScaleNs = 1_000_000
const tracksMax = 64
const film = 1
const sound = 2

interface Track {
  number: number
  type: number
  codec: string
  setup: Buffer
  rate: number
  channels: number
  bits: number
  /** True when the packets are compressed once more. */
  isPacked: boolean
  /** Undefined before the first packet. Null for an unknown codec. */
  secondsOf: ((packet: Buffer) => number) | null | undefined
  seconds: number
}

/**
 * Counts the sound of a file. Null when it is not such a file, contains no block, or has sound that cannot be counted. Reads each byte a
 * few times at most and never throws.
 */
export function countWebm(bytes: Buffer): CountedSound | null {
  if (bytes.length < 4 || bytes.readUInt32BE(0) !== magic) return null
  const tracks: Track[] = []
  /** The track that is being described. Null after the descriptions. */
  let track: Track | null = null
  let scaleNs = defaultScaleNs
  let clusterAt = 0
  let last: number | null = null
  let said = 0
  for (let at = 0; ; ) {
    const id = numberAt(bytes, at, false)
    const length = id === null ? null : numberAt(bytes, at + id.width, true)
    if (id === null || length === null) break
    const start = at + id.width + length.width
    const isContainer = containers.includes(id.value)
    // A recorder does not know the length of the segment and of clusters. Every other element must state its length.
    if (length.isOpen && !isContainer) break
    const content = bytes.subarray(start, start + length.value)
    if (id.value === ids.timestampScale) scaleNs = wholeOf(content) || defaultScaleNs
    else if (id.value === ids.timestamp) clusterAt = wholeOf(content)
    else if (id.value === ids.duration) said = floatOf(content)
    else if (id.value === ids.block || id.value === ids.simpleBlock) {
      last = Math.max(last ?? 0, clusterAt + offsetOf(content))
      readBlock(content, tracks)
    } else if (id.value === ids.track) {
      if (tracks.length >= tracksMax) return null
      track = newTrack()
      tracks.push(track)
    } else if (id.value === ids.cluster) track = null
    else if (track !== null) readTrack(track, id.value, content)
    at = isContainer ? start : start + length.value
  }
  const heard = tracks.filter(({ type }) => type === sound)
  if (last === null || heard.length === 0 || heard.some(({ secondsOf }) => secondsOf === null)) return null
  const claimed = (Math.max(last, said) * scaleNs) / 1e9
  const counted = Math.max(...heard.map(({ seconds }) => seconds))
  return { seconds: notBelow(claimed, counted), isCompact: false }
}

const newTrack = (): Track => ({
  number: 0,
  type: 0,
  codec: '',
  setup: Buffer.alloc(0),
  rate: 8000,
  channels: 1,
  bits: 0,
  isPacked: false,
  secondsOf: undefined,
  seconds: 0,
})

function readTrack(track: Track, id: number, content: Buffer): void {
  if (id === ids.trackNumber) track.number = wholeOf(content)
  else if (id === ids.trackType) track.type = wholeOf(content)
  else if (id === ids.codec) track.codec = content.toString('latin1', 0, 32)
  else if (id === ids.codecPrivate) track.setup = content
  else if (id === ids.rate) track.rate = floatOf(content)
  else if (id === ids.channels) track.channels = wholeOf(content)
  else if (id === ids.bits) track.bits = wholeOf(content)
  else if (id === ids.encodings) track.isPacked = true
}

function readBlock(content: Buffer, tracks: readonly Track[]): void {
  const number = numberAt(content, 0, true)
  const track = number === null ? undefined : tracks.find(each => each.number === number.value)
  if (number === null || track === undefined || track.type === film) return
  if (track.secondsOf === undefined) track.secondsOf = countingOf(track)
  const { secondsOf } = track
  if (secondsOf === null) return
  for (const packet of packetsOf(content.subarray(number.width + 2))) track.seconds += secondsOf(packet)
  if (Number.isNaN(track.seconds)) track.secondsOf = null
}

/** Returns a function that counts the packets of a track, and returns NaN for one that cannot be counted. Null for an unknown codec. */
function countingOf({ codec, setup, rate, channels, bits, isPacked }: Track): ((packet: Buffer) => number) | null {
  if (isPacked) return null
  if (codec === 'A_OPUS') return opusSeconds
  if (codec === 'A_VORBIS') {
    const [head, , rest] = lacedBytes(setup)
    const vorbis = head === undefined || rest === undefined ? null : VorbisPackets.of(head, rest)
    return vorbis === null ? null : packet => vorbis.next(packet)
  }
  if (codec.startsWith('A_AAC')) {
    const seconds = aacFrameSeconds(setup) ?? plainAacFrameSeconds(rate)
    // A packet that is longer than any frame holds several frames, which a decoder plays.
    return seconds === null ? null : packet => (packet.length > aacFrameMaxBytes ? Number.NaN : seconds)
  }
  if (codec.startsWith('A_MPEG/L')) return mpegPacketSeconds
  if (!isPlausibleRate(rate)) return null
  if (codec === 'A_FLAC') return packet => flacSeconds(packet, rate)
  const block = (channels * bits) / 8
  return codec.startsWith('A_PCM/') && block >= 1 ? packet => packet.length / block / rate : null
}

/**
 * Splits content into pieces by the lengths before it. A length is the sum of any number of bytes with the value 255 and one smaller byte. The last piece
 * is the rest.
 */
function lacedBytes(content: Buffer): Buffer[] {
  const lengths: number[] = []
  let at = 1
  for (let left = content[0] ?? 0; left > 0 && at < content.length; left--) {
    let length = 0
    for (let byte = 255; byte === 255 && at < content.length; at++) {
      byte = content[at] ?? 0
      length += byte
    }
    lengths.push(length)
  }
  return cut(content, at, lengths)
}

/** Like `lacedBytes`, with variable-length numbers. The first number is a length, and each further number is the difference from the previous length. */
function lacedNumbers(content: Buffer): Buffer[] {
  const lengths: number[] = []
  let at = 1
  for (let left = content[0] ?? 0; left > 0; left--) {
    const number = numberAt(content, at, true)
    if (number === null) break
    at += number.width
    const before = lengths.at(-1)
    lengths.push(Math.max(0, before === undefined ? number.value : before + number.value - (2 ** (7 * number.width - 1) - 1)))
  }
  return cut(content, at, lengths)
}

function cut(content: Buffer, from: number, lengths: readonly number[]): Buffer[] {
  let at = from
  const pieces = lengths.map(length => {
    const piece = content.subarray(at, at + length)
    at += length
    return piece
  })
  return [...pieces, content.subarray(at)]
}

/** Returns the packets of a block. `content` begins with the flags. */
function packetsOf(content: Buffer): Buffer[] {
  const lacing = ((content[0] ?? 0) >> 1) & 3
  const packets = content.subarray(1)
  if (lacing === 0) return [packets]
  if (lacing === 1) return lacedBytes(packets)
  if (lacing === 3) return lacedNumbers(packets)
  const count = (packets[0] ?? 0) + 1
  const each = Math.floor((packets.length - 1) / count)
  return Array.from({ length: count }, (_, index) => packets.subarray(1 + index * each, 1 + (index + 1) * each))
}

interface Read {
  readonly value: number
  readonly width: number
  /** True when all bits are ones, which means an unknown length. */
  readonly isOpen: boolean
}

/** Reads a number whose first byte states how many bytes it has. The marker bit is removed from lengths and kept in ids. */
function numberAt(bytes: Buffer, at: number, isLength: boolean): Read | null {
  const first = bytes[at]
  if (first === undefined || first === 0) return null
  const width = Math.clz32(first) - 23
  if (at + width > bytes.length) return null
  const mark = 0x100 >> width
  let value = isLength ? first - mark : first
  let isOpen = first === 2 * mark - 1
  for (let index = 1; index < width; index++) {
    const byte = bytes[at + index] ?? 0
    value = value * 256 + byte
    isOpen &&= byte === 0xff
  }
  return { value, width, isOpen }
}

function wholeOf(content: Buffer): number {
  let value = 0
  for (const byte of content.subarray(0, 8)) value = value * 256 + byte
  return value
}

function floatOf(content: Buffer): number {
  const value = content.length === 4 ? content.readFloatBE(0) : content.length === 8 ? content.readDoubleBE(0) : 0
  return Number.isFinite(value) && value > 0 ? value : 0
}

/** Returns the time of a block relative to its cluster. In the content it comes after the track number. */
function offsetOf(content: Buffer): number {
  const track = numberAt(content, 0, true)
  return track === null || content.length < track.width + 2 ? 0 : content.readInt16BE(track.width)
}
