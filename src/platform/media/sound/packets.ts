/** Calculates the length of one packet of a codec as its decoder does. */

/** Longest packet of Opus. Decoders refuse a longer one. */
const opusMaxMs = 120
const silkMs = [10, 20, 40, 60] as const
const celtMs = [2.5, 5, 10, 20] as const

/** Returns the seconds of an Opus packet. The first byte states the length and number of its frames (RFC 6716, section 3). */
export function opusSeconds(packet: Uint8Array): number {
  const first = packet[0]
  if (first === undefined) return 0
  const config = first >> 3
  const ms = config < 12 ? silkMs[(config & 3) as 0] : config < 16 ? silkMs[(config & 1) as 0] : celtMs[(config & 3) as 0]
  const code = first & 3
  const frames = code === 0 ? 1 : code === 3 ? (packet[1] ?? 0) & 63 : 2
  return Math.min(opusMaxMs, ms * frames) / 1000
}

const modesMax = 64

/**
 * Calculates the length of Vorbis packets. A packet lasts a quarter of the sum of its own block and the previous one, which overlap. The
 * mode of a packet says which of the two block sizes it has.
 */
export class VorbisPackets {
  readonly #rate: number
  readonly #sizes: readonly [number, number]
  /** For each mode, whether its blocks are the long ones. */
  readonly #isLong: readonly boolean[]
  readonly #mask: number
  #before = 0

  private constructor(rate: number, sizes: readonly [number, number], isLong: readonly boolean[]) {
    this.#rate = rate
    this.#sizes = sizes
    this.#isLong = isLong
    this.#mask = (1 << (32 - Math.clz32(isLong.length - 1))) - 1
  }

  /** Reads the first and the third packet of a stream. Null when they are not readable. */
  static of(head: Buffer, setup: Buffer): VorbisPackets | null {
    if (head.length < 29 || head.toString('latin1', 1, 7) !== 'vorbis' || setup[0] !== 5 || setup.toString('latin1', 1, 7) !== 'vorbis') return null
    const rate = head.readUInt32LE(12)
    const exponents = head[28] ?? 0
    const modes = modesOf(setup)
    return rate === 0 || modes === null ? null : new VorbisPackets(rate, [2 ** (exponents & 15), 2 ** (exponents >> 4)], modes)
  }

  /** Returns the seconds of the next packet. */
  next(packet: Uint8Array): number {
    const first = packet[0]
    // Only sound packets begin with a zero bit.
    if (first === undefined || (first & 1) !== 0) return 0
    const isLong = this.#isLong[(first >> 1) & this.#mask]
    if (isLong === undefined) return 0
    const size = this.#sizes[isLong ? 1 : 0]
    const samples = this.#before === 0 ? 0 : (this.#before + size) / 4
    this.#before = size
    return samples / this.#rate
  }
}

/**
 * Reads the modes, which are at the end of a setup packet. It reads backwards, as FFmpeg does, because a forward reader would have to decode everything
 * before the modes. Read backwards, there are a framing bit, 41 bits for each mode (40 of them are not needed), and six bits with the number of modes.
 */
function modesOf(setup: Buffer): boolean[] | null {
  const bits = setup.length * 8
  const bitAt = (at: number): number => ((setup[setup.length - 1 - (at >> 3)] ?? 0) >> (7 - (at & 7))) & 1
  const number = (at: number, width: number): number => {
    let value = 0
    for (let offset = 0; offset < width; offset++) value = value * 2 + bitAt(at + offset)
    return value
  }
  let start = 0
  while (bitAt(start) === 0) if (++start + 97 > bits) return null
  start++
  let count = 0
  for (let at = start, seen = 1; at + 97 <= bits && seen <= modesMax; at += 41, seen++) {
    if (number(at, 8) > 63 || number(at + 8, 16) !== 0 || number(at + 24, 16) !== 0) break
    if (number(at + 41, 6) + 1 === seen) count = seen
  }
  if (count === 0) return null
  return Array.from({ length: count }, (_, index) => bitAt(start + (count - 1 - index) * 41 + 40) === 1)
}
