/** MPEG audio (MP1, MP2, MP3) and AAC in ADTS: a sequence of frames, each with its own length. */
import { afterTags, type CountedSound } from './bounds.ts'

const kbits = {
  v1l1: [32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448],
  v1l2: [32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384],
  v1l3: [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
  v2l1: [32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256],
  v2l23: [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
} as const
const mpegRates = [44_100, 48_000, 32_000] as const
export const aacRates = [96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8000, 7350] as const
/** The first frame must begin within this many bytes. */
const leadMaxBytes = 64 * 1024

interface Frame {
  /** Length in bytes. */
  readonly length: number
  readonly seconds: number
  /** Version, layer and rate as one number. It is the same for all frames of a stream. */
  readonly family: number
}

/** Returns the frame whose head is at this position, or null. */
export function mpegFrameAt(bytes: Buffer, at: number): Frame | null {
  if (at + 4 > bytes.length || bytes[at] !== 0xff) return null
  const second = bytes[at + 1] ?? 0
  if ((second & 0xe0) !== 0xe0) return null
  return (second & 0xf6) === 0xf0 ? adtsFrameAt(bytes, at) : layeredFrameAt(bytes, at, second)
}

function layeredFrameAt(bytes: Buffer, at: number, second: number): Frame | null {
  const third = bytes[at + 2] ?? 0
  const version = (second >> 3) & 3
  const layer = 4 - ((second >> 1) & 3)
  const rateIndex = (third >> 2) & 3
  if (version === 1 || layer === 4 || rateIndex === 3) return null
  const isFirst = version === 3
  const table = layer === 1 ? (isFirst ? kbits.v1l1 : kbits.v2l1) : isFirst ? (layer === 2 ? kbits.v1l2 : kbits.v1l3) : kbits.v2l23
  const kbit = table[(third >> 4) - 1]
  if (kbit === undefined) return null
  const rate = mpegRates[rateIndex as 0 | 1 | 2] / (isFirst ? 1 : version === 2 ? 2 : 4)
  const padding = (third >> 1) & 1
  const samples = layer === 1 ? 384 : layer === 3 && !isFirst ? 576 : 1152
  const length = layer === 1 ? (Math.floor((12_000 * kbit) / rate) + padding) * 4 : Math.floor(((samples / 8) * 1000 * kbit) / rate) + padding
  return { length, seconds: samples / rate, family: second * 4 + rateIndex }
}

function adtsFrameAt(bytes: Buffer, at: number): Frame | null {
  if (at + 7 > bytes.length) return null
  const third = bytes[at + 2] ?? 0
  const rate = aacRates[(third >> 2) & 15]
  const length = (((bytes[at + 3] ?? 0) & 3) << 11) | ((bytes[at + 4] ?? 0) << 3) | ((bytes[at + 5] ?? 0) >> 5)
  if (rate === undefined || length < 7) return null
  return { length, seconds: (1024 * (((bytes[at + 6] ?? 0) & 3) + 1)) / rate, family: (bytes[at + 1] ?? 0) * 16 + ((third >> 2) & 15) }
}

export function countMpeg(bytes: Buffer): CountedSound | null {
  return countMpegFrames(bytes.subarray(afterTags(bytes)))
}

/**
 * Adds up all frames. After bytes that are not a frame, it continues with the next frame, as players do. Null when the file has another format: it does not
 * begin with two frames of one stream, or less than half of it consists of frames.
 */
export function countMpegFrames(bytes: Buffer): CountedSound | null {
  let at = firstFrame(bytes)
  if (at === null) return null
  let seconds = 0
  let framed = at
  for (let isFirst = true; at >= 0 && at < bytes.length; isFirst = false) {
    const frame = mpegFrameAt(bytes, at)
    if (frame === null) {
      at = bytes.indexOf(0xff, at + 1)
      continue
    }
    if (!isFirst || !isHeader(bytes, at, frame.length)) seconds += frame.seconds
    framed += Math.min(frame.length, bytes.length - at)
    at += frame.length
  }
  return framed * 2 < bytes.length ? null : { seconds, isCompact: true }
}

/** Returns the seconds of all frames of a packet. A decoder plays each frame of it, also where a container says that it is one. */
export function mpegPacketSeconds(packet: Buffer): number {
  let seconds = 0
  for (let at = packet.indexOf(0xff); at >= 0 && at < packet.length; ) {
    const frame = mpegFrameAt(packet, at)
    seconds += frame?.seconds ?? 0
    at = frame === null ? packet.indexOf(0xff, at + 1) : at + frame.length
  }
  return seconds
}

function firstFrame(bytes: Buffer): number | null {
  for (let at = bytes.indexOf(0xff); at >= 0 && at < leadMaxBytes; at = bytes.indexOf(0xff, at + 1)) {
    const frame = mpegFrameAt(bytes, at)
    if (frame === null) continue
    const end = at + frame.length
    if (end >= bytes.length || mpegFrameAt(bytes, end)?.family === frame.family) return at
  }
  return null
}

/** Returns whether a frame is silent and only describes the other frames. */
function isHeader(bytes: Buffer, at: number, length: number): boolean {
  const head = bytes.subarray(at, at + Math.min(length, 64))
  return head.includes('Xing') || head.includes('Info') || head.includes('VBRI')
}
