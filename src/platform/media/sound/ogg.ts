/**
 * Measures Ogg with Opus, Vorbis, Speex or FLAC. The length is the sum of the durations of the packets. The positions in the pages give a length too, but the
 * sender may have invented these positions.
 */
import { type CountedSound, isPlausibleRate, notBelow } from './bounds.ts'
import { flacSeconds } from './flac.ts'
import { opusSeconds, VorbisPackets } from './packets.ts'

/** Maximum number of streams of one file. A recorded radio programme has one stream for each song, and streams may also be parallel. */
const streamsMax = 256
/** Only this many bytes of a sound packet are kept. The first packets of a stream describe the stream and are kept completely. */
const headBytes = 32
const describingPackets = 3
const describingMaxBytes = 1024 * 1024

/** How the packets of a stream are counted. */
interface Counting {
  readonly rate: number
  /** Number of samples before the first audible one. */
  readonly skipped: number
  /** Number of packets at the start that describe the stream. */
  readonly heads: number
  readonly isCompact: boolean
  seconds(packet: Buffer): number
}

/** One stream of a file. */
class OggStream {
  /** Null while the codec is not known, and for a codec whose packets cannot be counted. */
  #counting: Counting | null = null
  #head: Buffer | null = null
  #packets = 0
  #parts: Buffer[] = []
  #kept = 0
  #seconds = 0
  #position = 0
  isUnknownSound = false

  /** Adds a piece of the current packet. */
  push(piece: Buffer): void {
    const room = (this.#packets < describingPackets ? describingMaxBytes : headBytes) - this.#kept
    if (room <= 0) return
    this.#parts.push(piece.length > room ? piece.subarray(0, room) : piece)
    this.#kept += Math.min(room, piece.length)
  }

  endPacket(): void {
    const [only] = this.#parts
    const packet = this.#parts.length === 1 && only !== undefined ? only : Buffer.concat(this.#parts)
    this.#parts = []
    this.#kept = 0
    const index = this.#packets++
    if (index === 0) this.#begin(packet)
    else if (this.#counting !== null) this.#seconds += index < this.#counting.heads ? 0 : this.#counting.seconds(packet)
    else if (index === 2 && this.#head !== null) {
      const vorbis = VorbisPackets.of(this.#head, packet)
      if (vorbis === null) this.isUnknownSound = true
      else this.#counting = { rate: this.#head.readUInt32LE(12), skipped: 0, heads: 3, isCompact: true, seconds: next => vorbis.next(next) }
    }
  }

  /** Records the position at the end of a page. */
  reach(position: bigint): void {
    if (position > 0n && position < 1n << 53n) this.#position = Math.max(this.#position, Number(position))
  }

  /** The counted sound. Null when no sound was counted. */
  get counted(): CountedSound | null {
    if (this.#counting === null) return null
    const { rate, skipped, isCompact } = this.#counting
    return { seconds: notBelow(Math.max(0, this.#position - skipped) / rate, this.#seconds), isCompact }
  }

  #begin(packet: Buffer): void {
    const isCalled = (name: string, at = 0): boolean => packet.toString('latin1', at, at + name.length) === name
    if (isCalled('OpusHead') && packet.length >= 19) {
      this.#counting = { rate: 48_000, skipped: packet.readUInt16LE(10), heads: 2, isCompact: true, seconds: opusSeconds }
    } else if (isCalled('\x01vorbis') && packet.length >= 29 && isPlausibleRate(packet.readUInt32LE(12))) this.#head = packet
    else if (isCalled('Speex   ') && packet.length >= 68 && isPlausibleRate(packet.readUInt32LE(36))) {
      const seconds = 0.02 * Math.max(1, Math.min(16, packet.readUInt32LE(64)))
      this.#counting = { rate: packet.readUInt32LE(36), skipped: 0, heads: 2, isCompact: true, seconds: () => seconds }
    } else if (isCalled('\x7fFLAC') && packet.length >= 35) {
      const rate = packet.readUIntBE(27, 3) >> 4
      this.#counting = { rate, skipped: 0, heads: 1, isCompact: false, seconds: next => flacSeconds(next, rate) }
      this.isUnknownSound = !isPlausibleRate(rate)
    } else this.isUnknownSound = isCalled('\x01vorbis') || isCalled('Speex   ') || isCalled('OpusHead') || isCalled('PCM     ') || isCalled('CELT    ')
  }
}

/** Counts the sound of a file. Null when it contains no countable sound or when less than half of it consists of pages. */
export function countOgg(bytes: Buffer): CountedSound | null {
  if (bytes.toString('latin1', 0, 4) !== 'OggS') return null
  const current = new Map<number, OggStream>()
  const streams: OggStream[] = []
  let paged = 0
  for (let at = 0; at >= 0 && at + 27 <= bytes.length; at = bytes.indexOf('OggS', at, 'latin1')) {
    const segments = bytes[at + 26] ?? 0
    const serial = bytes.readUInt32LE(at + 14)
    let stream = current.get(serial)
    if (stream === undefined || ((bytes[at + 5] ?? 0) & 2) !== 0) {
      if (streams.length >= streamsMax) return null
      stream = new OggStream()
      current.set(serial, stream)
      streams.push(stream)
    }
    const from = at
    at = readPackets(bytes, at + 27, segments, stream)
    stream.reach(bytes.readBigUInt64LE(from + 6))
    paged += at - from
  }
  const counted = streams.flatMap(stream => stream.counted ?? [])
  if (counted.length === 0 || streams.some(stream => stream.isUnknownSound) || paged * 2 < bytes.length) return null
  return { seconds: counted.reduce((sum, { seconds }) => sum + seconds, 0), isCompact: counted.every(({ isCompact }) => isCompact) }
}

/** Reads the packets of a page from its table of pieces. Returns the position after the page. */
function readPackets(bytes: Buffer, table: number, segments: number, stream: OggStream): number {
  let at = table + segments
  for (let index = 0; index < segments; index++) {
    const length = bytes[table + index] ?? 0
    if (length > 0 && at < bytes.length) stream.push(bytes.subarray(at, at + length))
    at += length
    if (length < 255) stream.endPacket()
  }
  return Math.min(at, bytes.length)
}
