import { createHash } from 'node:crypto'
import { crc32, deflateSync } from 'node:zlib'

/** The number of squares along an edge of the pattern. */
const squares = 8
/** The longest edge of a picture in pixels. Larger requests are reduced to it. */
const edgeMax = 2048

/** What a simulated picture is made from: a digest of the request, and the size. Both together are the picture's name. */
export interface Picture {
  /** 32 hex characters. */
  readonly digest: string
  readonly width: number
  readonly height: number
}

/** Returns the picture for these texts and bytes. It is the same on every machine. */
export function pictureOf(parts: readonly (string | Uint8Array)[], width: number, height: number): Picture {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(`${part.length} `).update(part)
  return { digest: hash.digest('hex').slice(0, 32), width: Math.min(width, edgeMax), height: Math.min(height, edgeMax) }
}

/** Returns the file name of a picture. `pictureNamed` reads it back. */
export const nameOf = ({ digest, width, height }: Picture): string => `${digest}-${width}x${height}.png`

/** Returns the picture of that name, or null for an unknown name. */
export function pictureNamed(name: string): Picture | null {
  const found = /^([0-9a-f]{32})-([1-9]\d{0,3})x([1-9]\d{0,3})\.png$/.exec(name)
  if (found === null) return null
  const [, digest = '', width, height] = found
  const picture = { digest, width: Number(width), height: Number(height) }
  return picture.width <= edgeMax && picture.height <= edgeMax ? picture : null
}

/** Returns a PNG of two colours with eight by eight mirrored squares. It has one bit per pixel, so that a large picture takes little time. */
export function pngOf({ digest, width, height }: Picture): Buffer {
  const bytes = Buffer.from(digest, 'hex')
  const rowBytes = Math.ceil(width / 8)
  const rows = Array.from({ length: squares }, (_, line) => rowOf(bytes, line, width, rowBytes))
  const pixels = Buffer.concat(Array.from({ length: height }, (_, y) => rows[Math.floor((y * squares) / height)] ?? Buffer.alloc(rowBytes + 1)))
  const head = Buffer.alloc(13)
  head.writeUInt32BE(width, 0)
  head.writeUInt32BE(height, 4)
  // One bit per pixel, with colours from a palette.
  head.set([1, 3], 8)
  const palette = Buffer.concat([bytes.subarray(8, 11), bytes.subarray(11, 14).map(channel => 255 - (channel >> 2))])
  return Buffer.concat([
    Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
    chunk('IHDR', head),
    chunk('PLTE', palette),
    chunk('IDAT', deflateSync(pixels)),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

/** Returns one line of pixels after its filter byte. Each bit of the digest is a square and its mirror image. */
function rowOf(bytes: Buffer, line: number, width: number, rowBytes: number): Buffer {
  const row = Buffer.alloc(rowBytes + 1)
  for (let x = 0; x < width; x++) {
    const square = Math.floor((x * squares) / width)
    const isSet = (((bytes[line] ?? 0) >> Math.min(square, squares - 1 - square)) & 1) === 1
    if (isSet) row[1 + (x >> 3)] = (row[1 + (x >> 3)] ?? 0) | (0x80 >> (x & 7))
  }
  return row
}

function chunk(type: string, data: Buffer): Buffer {
  const typed = Buffer.concat([Buffer.from(type, 'latin1'), data])
  const length = Buffer.alloc(4)
  length.writeUInt32BE(data.length)
  const check = Buffer.alloc(4)
  check.writeUInt32BE(crc32(typed))
  return Buffer.concat([length, typed, check])
}
