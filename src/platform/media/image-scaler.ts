import type { Sharp, SharpOptions } from 'sharp'
import type { CancelSignal } from '../loop/cancellation.ts'

/** Most pixels that are decoded: larger pictures, and files that only claim to be, are left alone. */
const pixelsMax = 64 * 1024 * 1024
/** Largest file that is decoded. */
const fileMaxBytes = 24 * 1024 * 1024
/** How long one picture may take. */
const secondsMax = 10
/** Pictures that are worked on concurrently; each takes one thread of the pool. */
const atOnceMax = 2
/** Most pictures that wait; further ones are left alone. */
const waitingMax = 64

type SharpMaker = (input: Buffer, options: SharpOptions) => Sharp

export type ImageFormat = 'jpeg' | 'png' | 'webp' | 'gif'

export interface SmallerImage {
  readonly bytes: Buffer
  readonly format: ImageFormat
}

/**
 * Makes pictures smaller, in memory, on threads of the pool. The decoder is loaded with the first picture. Nothing that a picture holds can make
 * this throw: what cannot be read, what moves, and what is too large to be decoded is left alone. Decision 0172 says why.
 */
export class ImageScaler {
  #sharp: Promise<SharpMaker> | null = null
  #running = 0
  readonly #waiting: (() => void)[] = []

  /**
   * The same picture, in the same format and turned as it is meant to be seen, with its longest edge brought down to `maxEdge` pixels.
   * Null: it fits already, or must be left alone. Never larger.
   */
  async shrink(bytes: Buffer, maxEdge: number, signal: CancelSignal): Promise<SmallerImage | null> {
    const format = formatOf(bytes)
    if (format === null || bytes.length > fileMaxBytes || !(await this.#turn())) return null
    try {
      return signal.aborted ? null : await scaled(await this.#load(), bytes, format, maxEdge)
    } catch {
      return null
    } finally {
      this.#running--
      this.#waiting.shift()?.()
    }
  }

  /** False: too many wait. */
  async #turn(): Promise<boolean> {
    if (this.#running >= atOnceMax) {
      if (this.#waiting.length >= waitingMax) return false
      await new Promise<void>(resolve => this.#waiting.push(resolve))
    }
    this.#running++
    return true
  }

  #load(): Promise<SharpMaker> {
    this.#sharp ??= import('sharp').then(({ default: sharp }) => {
      // Pictures of strangers are not kept, and one picture does not take all cores.
      sharp.cache(false)
      sharp.concurrency(1)
      return sharp
    })
    return this.#sharp
  }
}

/** By the first bytes, so that no decoder sees anything but these four: not SVG, which can name files. */
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
  // The header alone.
  const { width, height, pages = 1 } = await sharp(bytes, options).metadata()
  if (pages > 1 || Math.max(width, height) <= maxEdge || width * height > pixelsMax) return null
  const smaller = sharp(bytes, options)
    .autoOrient()
    .resize({ width: maxEdge, height: maxEdge, fit: 'inside', withoutEnlargement: true })
    .timeout({ seconds: secondsMax })
  return { bytes: await encoded(smaller, format).toBuffer(), format }
}

/** Quality that text in a picture survives. */
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
