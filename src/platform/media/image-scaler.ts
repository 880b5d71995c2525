import type { Sharp, SharpOptions } from 'sharp'
import type { Clock } from '../clock.ts'
import type { CancelSignal } from '../loop/cancellation.ts'
import { ImageTurns } from './image-turns.ts'

/** Maximum number of pixels of an image that is decoded. An image whose header states more pixels is not changed. */
const pixelsMax = 64 * 1024 * 1024
/** Largest file that is decoded, in bytes. */
const fileMaxBytes = 24 * 1024 * 1024
/** Longest time for one image, in seconds. */
const secondsMax = 10
type SharpMaker = (input: Buffer, options: SharpOptions) => Sharp

export type ImageFormat = 'jpeg' | 'png' | 'webp' | 'gif'

export interface SmallerImage {
  readonly bytes: Buffer
  readonly format: ImageFormat
}

/** The call to which an image belongs. */
export interface ImageCaller {
  readonly orgId: number
  readonly signal: CancelSignal
}

/**
 * Makes images smaller, in memory, on threads of the pool. The decoder is loaded with the first image. It never throws because of an image's content. An
 * image that is unreadable, animated or too large to decode is not changed. Decisions 0172 and 0497 give the reasons.
 */
export class ImageScaler {
  #sharp: Promise<SharpMaker> | null = null
  readonly #turns: ImageTurns
  readonly #founderOf: (orgId: number) => string

  /** `founderOf` returns the founder of an organisation. When it is left out, each organisation is its own founder. */
  constructor(clock: Pick<Clock, 'after'>, founderOf: (orgId: number) => string = String) {
    this.#turns = new ImageTurns(clock)
    this.#founderOf = founderOf
  }

  /**
   * Returns the image in the same format, in its intended orientation, with its longest edge reduced to `maxEdge` pixels. Never enlarges.
   * Null when the image is small enough or is not changed for another reason.
   */
  async shrink(bytes: Buffer, maxEdge: number, { orgId, signal }: ImageCaller): Promise<SmallerImage | null> {
    const format = formatOf(bytes)
    if (format === null || bytes.length > fileMaxBytes) return null
    try {
      return await this.#turns.run(this.#founderOf(orgId), signal, async () => scaled(await this.#load(), bytes, format, maxEdge))
    } catch {
      return null
    }
  }

  #load(): Promise<SharpMaker> {
    this.#sharp ??= import('sharp').then(({ default: sharp }) => {
      // Without these settings, the cache would keep images of users, and one image could use all cores.
      sharp.cache(false)
      sharp.concurrency(1)
      return sharp
    })
    return this.#sharp
  }
}

/** Returns the format by the first bytes. The decoder gets only these four formats. SVG is excluded because it can refer to files. */
function formatOf(bytes: Buffer): ImageFormat | null {
  if (bytes.length < 12) return null
  if (bytes[0] === 0xff && bytes[1] === 0xd8 && bytes[2] === 0xff) return 'jpeg'
  const head = bytes.toString('latin1', 0, 12)
  if (head.startsWith('\x89PNG\r\n\x1a\n')) return 'png'
  if (head.startsWith('RIFF') && head.endsWith('WEBP')) return 'webp'
  return head.startsWith('GIF87a') || head.startsWith('GIF89a') ? 'gif' : null
}

async function scaled(sharp: SharpMaker, bytes: Buffer, format: ImageFormat, maxEdge: number): Promise<SmallerImage | null> {
  const options: SharpOptions = { limitInputPixels: pixelsMax, sequentialRead: true, failOn: 'error' }
  // This reads only the header.
  const { width, height, pages = 1 } = await sharp(bytes, options).metadata()
  if (pages > 1 || Math.max(width, height) <= maxEdge || width * height > pixelsMax) return null
  const smaller = sharp(bytes, options)
    .autoOrient()
    .resize({ width: maxEdge, height: maxEdge, fit: 'inside', withoutEnlargement: true })
    .timeout({ seconds: secondsMax })
  return { bytes: await encoded(smaller, format).toBuffer(), format }
}

/** Encodes with a quality at which text in an image stays readable. */
function encoded(image: Sharp, format: ImageFormat): Sharp {
  switch (format) {
    case 'jpeg':
      return image.jpeg({ quality: 90 })
    case 'png':
      return image.png()
    case 'webp':
      return image.webp({ quality: 90 })
    case 'gif':
      return image.gif()
  }
}
