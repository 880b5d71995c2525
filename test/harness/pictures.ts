import { createHash } from 'node:crypto'
import { crc32, deflateSync } from 'node:zlib'
import sharp from 'sharp'
import type { RecordedRequest } from './upstream-server.ts'

/** Makes a picture in which every pixel encodes its position, so that a test can detect rotation and scaling. */
export async function picture(width: number, height: number, format: 'jpeg' | 'png' | 'webp' | 'gif' = 'png', orientation?: number, blue = 0): Promise<Buffer> {
  const pixels = Buffer.alloc(width * height * 3)
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++) {
      const at = (y * width + x) * 3
      pixels[at] = Math.floor((255 * x) / width)
      pixels[at + 1] = Math.floor((255 * y) / height)
      pixels[at + 2] = blue
    }
  const image = sharp(pixels, { raw: { width, height, channels: 3 } })
  return (orientation === undefined ? image : image.withMetadata({ orientation })).toFormat(format).toBuffer()
}

/** Makes a PNG of that size with very few bytes: one bit for each pixel, all of them black. */
export function bomb(width: number, height: number): Buffer {
  const chunk = (type: string, data: Buffer): Buffer => {
    const body = Buffer.concat([Buffer.from(type, 'latin1'), data])
    const framed = Buffer.alloc(body.length + 8)
    framed.writeUInt32BE(data.length, 0)
    body.copy(framed, 4)
    framed.writeUInt32BE(crc32(body), body.length + 4)
    return framed
  }
  const head = Buffer.alloc(13)
  head.writeUInt32BE(width, 0)
  head.writeUInt32BE(height, 4)
  head[8] = 1
  const rows = deflateSync(Buffer.alloc(height * (1 + Math.ceil(width / 8))), { level: 9 })
  return Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), chunk('IHDR', head), chunk('IDAT', rows), chunk('IEND', Buffer.alloc(0))])
}

export const urlOf = (bytes: Buffer, type = 'image/png'): string => `data:${type};base64,${bytes.toString('base64')}`
export const partOf = (url: string) => ({ type: 'image_url', image_url: { url, detail: 'high' } })
export const digest = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')

/** Returns every inline picture in a request to a provider, in order, for every format. */
export function sentPictures(request: RecordedRequest | undefined): Buffer[] {
  const found: Buffer[] = []
  const walk = (value: unknown): void => {
    if (typeof value === 'string' && value.startsWith('data:image/')) found.push(Buffer.from(value.slice(value.indexOf(',') + 1), 'base64'))
    else if (typeof value === 'object' && value !== null) {
      if ('type' in value && value.type === 'base64' && 'data' in value) found.push(Buffer.from(String(value.data), 'base64'))
      else Object.values(value).forEach(walk)
    }
  }
  walk(request?.json)
  return found
}

export const sizeOf = async (bytes: Buffer | undefined): Promise<readonly number[]> => {
  const { width, height } = await sharp(bytes).metadata()
  return [width, height]
}
