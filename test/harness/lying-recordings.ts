/** Recordings whose headers state too short a length. The sound lasts `seconds`. */
import { m4aOf, mp3Of, oggOpusOf, webmOf } from './recordings.ts'
import { wavOf } from './wav.ts'

/** The header states 50 times the real byte rate, which players ignore, and an end of the sound after 200 bytes. */
function wav(seconds: number): Buffer {
  const file = wavOf(seconds)
  file.writeUInt32LE(16_000 * 50, 28)
  file.writeUInt32LE(200, 40)
  return file
}

/** The first frame states that there is only one frame. */
function mp3(seconds: number): Buffer {
  const sound = mp3Of(seconds)
  const head = Buffer.from(sound.subarray(0, 36))
  head.write('Xing', 13, 'latin1')
  head.writeUInt32BE(1, 17)
  head.writeUInt32BE(1, 21)
  return Buffer.concat([head, sound])
}

/** Each page has fifty packets of 20 ms, but its position is one sample. */
function ogg(seconds: number): Buffer {
  const heads = oggOpusOf(0)
  const pages = Array.from({ length: Math.round(seconds) }, (_, index) => {
    const head = Buffer.alloc(27)
    head.write('OggS', 0, 'latin1')
    head.writeBigUInt64LE(1n, 6)
    head.writeUInt32LE(7, 14)
    head.writeUInt32LE(index + 2, 18)
    head[26] = 50
    const packet = Buffer.concat([Buffer.from([0x08]), Buffer.alloc(19)])
    return Buffer.concat([head, Buffer.alloc(50, packet.length), ...Array.from({ length: 50 }, () => packet)])
  })
  return Buffer.concat([heads, ...pages])
}

/** Frames of 4,096 samples at 16 kHz, after a block that states one sample. */
function flac(seconds: number): Buffer {
  const info = Buffer.alloc(34)
  info.writeUInt16BE(4096, 0)
  info.writeUInt16BE(4096, 2)
  info.writeBigUInt64BE((16_000n << 44n) | (15n << 36n) | 1n, 10)
  const frames = Array.from({ length: Math.round((seconds * 16_000) / 4096) }, () => {
    const head = Buffer.from([0xff, 0xf8, 0xc5, 0x08, 0])
    return Buffer.concat([head, Buffer.from([checksum(head)]), Buffer.alloc(40)])
  })
  return Buffer.concat([Buffer.from('fLaC'), Buffer.from([0x80, 0, 0, 34]), info, ...frames])
}

function checksum(head: Buffer): number {
  let sum = 0
  for (const byte of head) {
    sum ^= byte
    for (let bit = 0; bit < 8; bit++) sum = sum & 0x80 ? ((sum << 1) ^ 0x07) & 0xff : sum << 1
  }
  return sum
}

/** The headers of the movie and its track state one sample. */
function m4a(seconds: number): Buffer {
  const file = m4aOf(seconds)
  for (const name of ['mvhd', 'mdhd']) file.writeUInt32BE(1, file.indexOf(name, 0, 'latin1') + 20)
  return file
}

/** All times are a millionth of the real ones. Each packet has 60 ms. */
function webm(seconds: number): Buffer {
  const file = webmOf(seconds, true)
  const scale = file.indexOf(Buffer.from('2ad7b1', 'hex'))
  file.writeUInt32BE(1, scale + 11)
  for (let at = file.indexOf(block); at >= 0; at = file.indexOf(block, at + block.length)) file[at + block.length + 4] = 0x18
  return file
}

/** The id and length of a block, as `webmOf` writes them. */
const block = Buffer.from('a3010000000000000c', 'hex')

/** The recordings, each with a name and a function that makes it. */
export const lyingRecordings: readonly (readonly [string, (seconds: number) => Buffer])[] = [
  ['wav', wav],
  ['mp3', mp3],
  ['ogg', ogg],
  ['flac', flac],
  ['m4a', m4a],
  ['webm', webm],
]
