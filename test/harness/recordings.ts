/** Makes small recordings in the formats that people send. They contain silence of an exactly known length. */

const bytes = (...values: number[]): Buffer => Buffer.from(values)
const u32 = (value: number): Buffer => {
  const four = Buffer.alloc(4)
  four.writeUInt32BE(value)
  return four
}
const u16 = (value: number): Buffer => u32(value).subarray(2)
const text = (value: string): Buffer => Buffer.from(value, 'latin1')
const zeros = (count: number): Buffer => Buffer.alloc(count)

/** MPEG 2 layer III, 16 kHz, 8 kbit/s, one channel: frames of 36 bytes and 576 samples, without a header that says how many. */
export function mp3Of(seconds: number): Buffer {
  const frame = Buffer.concat([bytes(0xff, 0xf3, 0x18, 0xc4), zeros(32)])
  return Buffer.concat(Array.from({ length: Math.round((seconds * 16_000) / 576) }, () => frame))
}

/** FLAC with only the block that states the number of samples, without frames. */
export function flacOf(seconds: number): Buffer {
  const rate = 16_000
  const info = Buffer.alloc(34)
  info.writeUInt16BE(4096, 0)
  info.writeUInt16BE(4096, 2)
  // 20 bits for the rate, 3 for the channels minus one, 5 for the bits minus one, 36 for the number of samples.
  info.writeBigUInt64BE((BigInt(rate) << 44n) | (15n << 36n) | BigInt(Math.round(seconds * rate)), 10)
  return Buffer.concat([text('fLaC'), bytes(0x80, 0, 0, 34), info])
}

/** Ogg with Opus: two pages of headers, then one page for each second. Positions count samples at 48 kHz. */
export function oggOpusOf(seconds: number): Buffer {
  const skipped = 312
  const head = Buffer.concat([text('OpusHead'), bytes(1, 1, skipped & 0xff, skipped >> 8), bytes(0x80, 0x3e, 0, 0), bytes(0, 0, 0)])
  const tags = Buffer.concat([text('OpusTags'), bytes(4, 0, 0, 0), text('test'), zeros(4)])
  const pages = [oggPage(2, 0n, 0, head), oggPage(0, 0n, 1, tags)]
  const total = Math.round(seconds * 48_000)
  for (let at = 0; at < total; ) {
    at = Math.min(total, at + 48_000)
    pages.push(oggPage(at === total ? 4 : 0, BigInt(at + skipped), pages.length, Buffer.concat([bytes(0x08), zeros(60)])))
  }
  return Buffer.concat(pages)
}

function oggPage(flags: number, position: bigint, sequence: number, packet: Buffer): Buffer {
  const head = Buffer.alloc(28)
  head.write('OggS', 0, 'latin1')
  head[5] = flags
  head.writeBigUInt64LE(position, 6)
  head.writeUInt32LE(7, 14)
  head.writeUInt32LE(sequence, 18)
  head[26] = 1
  head[27] = packet.length
  const page = Buffer.concat([head, packet])
  page.writeUInt32LE(oggChecksum(page), 22)
  return page
}

function oggChecksum(page: Buffer): number {
  let sum = 0
  for (const byte of page) {
    sum ^= byte << 24
    for (let bit = 0; bit < 8; bit++) sum = sum & 0x80000000 ? (sum << 1) ^ 0x04c11db7 : sum << 1
  }
  return sum >>> 0
}

const box = (type: string, ...content: Buffer[]): Buffer => {
  const inside = Buffer.concat(content)
  return Buffer.concat([u32(inside.length + 8), text(type), inside])
}

/** MP4 with one track of AAC, 16 kHz, frames of 1,024 samples. */
export function m4aOf(seconds: number): Buffer {
  const rate = 16_000
  const samples = Math.round(seconds * rate)
  const frames = Math.ceil(samples / 1024)
  const mvhd = box('mvhd', zeros(12), u32(rate), u32(samples), u32(0x10000), zeros(76), u32(2))
  const tkhd = box('tkhd', u32(7), zeros(8), u32(1), zeros(4), u32(samples), zeros(60))
  const mdhd = box('mdhd', zeros(12), u32(rate), u32(samples), zeros(4))
  const hdlr = box('hdlr', zeros(8), text('soun'), zeros(13))
  const mp4a = box('mp4a', zeros(6), u16(1), zeros(8), u16(1), u16(16), zeros(4), u16(rate), u16(0))
  const stsd = box('stsd', zeros(4), u32(1), mp4a)
  const stts = box('stts', zeros(4), u32(1), u32(frames), u32(1024))
  const stsc = box('stsc', zeros(4), u32(1), u32(1), u32(frames), u32(1))
  const stsz = box('stsz', zeros(4), u32(4), u32(frames))
  const stco = box('stco', zeros(4), u32(1), u32(0))
  const stbl = box('stbl', stsd, stts, stsc, stsz, stco)
  const minf = box('minf', box('smhd', zeros(8)), stbl)
  const moov = box('moov', mvhd, box('trak', tkhd, box('mdia', mdhd, hdlr, minf)))
  return Buffer.concat([box('ftyp', text('M4A '), u32(0), text('M4A isom')), moov, box('mdat', zeros(frames * 4))])
}

const element = (id: string, content: Buffer): Buffer => Buffer.concat([Buffer.from(id, 'hex'), bytes(0x01), zeros(3), u32(content.length), content])
/** Writes the start of an element with an unknown length, as a recorder does. */
const openElement = (id: string): Buffer => Buffer.concat([Buffer.from(id, 'hex'), Buffer.from('01ffffffffffffff', 'hex')])

/**
 * WebM with Opus, with a block every 60 ms and clusters of five seconds. With `live` it is like a recording of a browser, without a duration and without
 * lengths of segment and clusters.
 */
export function webmOf(seconds: number, live = false): Buffer {
  const head = element('1a45dfa3', Buffer.concat([element('4282', text('webm')), element('4287', bytes(4)), element('4285', bytes(2))]))
  const duration = Buffer.alloc(8)
  duration.writeDoubleBE(seconds * 1000)
  const info = element('1549a966', Buffer.concat([element('2ad7b1', u32(1_000_000)), ...(live ? [] : [element('4489', duration)])]))
  const opus = Buffer.concat([text('OpusHead'), bytes(1, 1, 0x38, 1, 0x80, 0x3e, 0, 0, 0, 0, 0)])
  const rate = Buffer.alloc(8)
  rate.writeDoubleBE(48_000)
  const audio = element('e1', Buffer.concat([element('b5', rate), element('9f', bytes(1))]))
  const track = Buffer.concat([
    element('d7', bytes(1)),
    element('73c5', bytes(1)),
    element('83', bytes(2)),
    element('86', text('A_OPUS')),
    element('63a2', opus),
    audio,
  ])
  const tracks = element('1654ae6b', element('ae', track))
  const clusters: Buffer[] = []
  for (let startMs = 0; startMs < seconds * 1000; startMs += 5000) {
    const blocks = [element('e7', u32(startMs))]
    for (let atMs = startMs; atMs < Math.min(startMs + 5000, seconds * 1000); atMs += 60)
      blocks.push(element('a3', Buffer.concat([bytes(0x81), u16(atMs - startMs), bytes(0x80), zeros(8)])))
    clusters.push(live ? Buffer.concat([openElement('1f43b675'), ...blocks]) : element('1f43b675', Buffer.concat(blocks)))
  }
  const inside = Buffer.concat([info, tracks, ...clusters])
  return Buffer.concat([head, live ? Buffer.concat([openElement('18538067'), inside]) : element('18538067', inside)])
}

/** Matroska with a packet, once or several times, whose codec has this name. */
export function webmWithPacket(codec: string, packet: Buffer, times = 1): Buffer {
  const head = element('1a45dfa3', element('4282', text('matroska')))
  const info = element('1549a966', element('2ad7b1', u32(1_000_000)))
  const track = element('ae', Buffer.concat([element('d7', bytes(1)), element('83', bytes(2)), element('86', text(codec))]))
  const block = element('a3', Buffer.concat([bytes(0x81), u16(0), bytes(0x80), packet]))
  const cluster = element('1f43b675', Buffer.concat([element('e7', u32(0)), ...Array.from({ length: times }, () => block)]))
  return Buffer.concat([head, element('18538067', Buffer.concat([info, element('1654ae6b', track), cluster]))])
}

/** AMR at 4.75 kbit/s, or AMR-WB at 6.6 kbit/s: frames of 20 ms. */
export function amrOf(seconds: number, isWide = false): Buffer {
  const frame = Buffer.alloc(isWide ? 18 : 13, 0x55)
  frame[0] = 0x04
  return Buffer.concat([text(isWide ? '#!AMR-WB\n' : '#!AMR\n'), ...Array.from({ length: Math.round(seconds * 50) }, () => frame)])
}

const narrowFrame = Buffer.from(amrOf(0.02).subarray(6))
const wideFrame = Buffer.from(amrOf(0.02, true).subarray(9))
/** An Opus packet of 20 ms. */
const opusPacket = Buffer.concat([bytes(0x08), zeros(19)])

/** MP4 or 3GP whose samples have several packets of 20 ms each, four samples a chunk. Its header says one second, whatever it holds. */
function packetFileOf(codec: string, packet: Buffer, perSample: number, seconds: number): Buffer {
  const packets = Math.round(seconds * 50)
  const samples = Math.ceil(packets / perSample)
  const sizes = Array.from({ length: samples }, (_, index) => packet.length * Math.min(perSample, packets - index * perSample))
  const chunks = Math.ceil(samples / 4)
  const fileWith = (firstAt: number): Buffer => {
    const offsets = Array.from({ length: chunks }, (_, index) => u32(firstAt + index * 4 * perSample * packet.length))
    const entry = box(codec, zeros(6), u16(1), zeros(8), u16(1), u16(16), zeros(4), u16(8000), u16(0), box('damr', text('test'), zeros(3), bytes(0, perSample)))
    const stbl = box(
      'stbl',
      box('stsd', zeros(4), u32(1), entry),
      box('stts', zeros(4), u32(1), u32(samples), u32(160)),
      box('stsc', zeros(4), u32(1), u32(1), u32(4), u32(1)),
      box('stsz', zeros(8), u32(samples), ...sizes.map(u32)),
      box('stco', zeros(4), u32(chunks), ...offsets),
    )
    const mdia = box('mdia', box('mdhd', zeros(12), u32(8000), u32(8000), zeros(4)), box('hdlr', zeros(8), text('soun'), zeros(13)), box('minf', stbl))
    const tkhd = box('tkhd', u32(7), zeros(8), u32(1), zeros(4), u32(8000), zeros(60))
    return Buffer.concat([
      box('ftyp', text('3gp4'), u32(0), text('3gp4')),
      box('moov', box('trak', tkhd, mdia)),
      u32(packets * packet.length + 8),
      text('mdat'),
    ])
  }
  const head = fileWith(fileWith(0).length)
  return Buffer.concat([head, ...Array.from({ length: packets }, () => packet)])
}

export const threeGpOf = (seconds: number): Buffer => packetFileOf('samr', narrowFrame, 10, seconds)
export const wideThreeGpOf = (seconds: number): Buffer => packetFileOf('sawb', wideFrame, 1, seconds)
export const opusMp4Of = (seconds: number): Buffer => packetFileOf('Opus', opusPacket, 1, seconds)

/** CAF with one channel: a description, and the sound of a codec. */
function cafOf(codec: string, bits: number, sound: Buffer): Buffer {
  const rate = Buffer.alloc(8)
  rate.writeDoubleBE(8000)
  const chunk = (type: string, content: Buffer): Buffer => Buffer.concat([text(type), u32(0), u32(content.length), content])
  const description = Buffer.concat([rate, text(codec), u32(0), u32(0), u32(160), u32(1), u32(bits)])
  return Buffer.concat([text('caff'), u16(1), u16(0), chunk('desc', description), chunk('free', zeros(10)), chunk('data', Buffer.concat([zeros(4), sound]))])
}

export const amrCafOf = (seconds: number): Buffer => cafOf('samr', 0, Buffer.from(amrOf(seconds).subarray(6)))
export const plainCafOf = (seconds: number): Buffer => cafOf('lpcm', 16, zeros(Math.round(seconds * 8000) * 2))
