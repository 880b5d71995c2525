import sharp from 'sharp'
import { describe, expect, test } from 'vitest'
import { systemClock } from '../../src/platform/clock.ts'
import { ImageScaler } from '../../src/platform/media/image-scaler.ts'
import { picture, sizeOf } from '../harness/pictures.ts'

const caller = { orgId: 1, signal: new AbortController().signal }
const mebibyte = 1024 * 1024

describe('images that are made smaller, and images that are not changed', () => {
  const scaler = new ImageScaler(systemClock)

  test('scaling removes the metadata of an image: place, author and thumbnail', async () => {
    const noted = await sharp(await picture(600, 400, 'jpeg'))
      .withExif({ IFD0: { Copyright: 'Asha of 12 Lake Road', ImageDescription: 'at home' } })
      .withXmp('<x:xmpmeta xmlns:x="adobe:ns:meta/"><secret/></x:xmpmeta>')
      .jpeg()
      .toBuffer()
    expect(noted.toString('latin1')).toContain('Lake Road')
    const made = await scaler.shrink(noted, 300, caller)
    expect(await sizeOf(made?.bytes)).toEqual([300, 200])
    const { exif, xmp, iptc } = await sharp(made?.bytes).metadata()
    expect([exif, xmp, iptc]).toEqual([undefined, undefined, undefined])
    expect(made?.bytes.toString('latin1')).not.toMatch(/Lake Road|secret/)
  })

  test('images with other colour models or transparency look the same after scaling', async () => {
    const ink = await sharp(await picture(600, 400, 'jpeg'))
      .toColourspace('cmyk')
      .jpeg()
      .toBuffer()
    expect((await sharp(ink).metadata()).space).toBe('cmyk')
    expect((await sharp((await scaler.shrink(ink, 300, caller))?.bytes).metadata()).space).toBe('srgb')
    const clear = await sharp({ create: { width: 600, height: 10, channels: 4, background: { r: 1, g: 2, b: 3, alpha: 0 } } })
      .png()
      .toBuffer()
    expect((await sharp((await scaler.shrink(clear, 300, caller))?.bytes).stats()).isOpaque).toBe(false)
  })

  test('an image that is one pixel wide or high stays one pixel wide or high', async () => {
    const line = await picture(900, 1)
    expect(await sizeOf((await scaler.shrink(line, 100, caller))?.bytes)).toEqual([100, 1])
  })

  test('files over 24 MiB, images over 64 million pixels, and images of aborted calls are not changed', async () => {
    const small = await picture(600, 400)
    expect(await scaler.shrink(Buffer.concat([small, Buffer.alloc(24 * mebibyte - small.length)]), 300, caller)).not.toBeNull()
    expect(await scaler.shrink(Buffer.concat([small, Buffer.alloc(24 * mebibyte + 1 - small.length)]), 300, caller)).toBeNull()
    const wide = await sharp({ create: { width: 16_384, height: 4097, channels: 3, background: 'red' } })
      .jpeg()
      .toBuffer()
    expect(await scaler.shrink(wide, 300, caller)).toBeNull()
    expect(await scaler.shrink(small, 300, { ...caller, signal: AbortSignal.abort() })).toBeNull()
  })

  test('for one founder, two images are processed and fifty-eight wait. Further ones are refused immediately, and later ones are accepted again', async () => {
    const bytes = await picture(400, 300)
    const all = await Promise.all(Array.from({ length: 70 }, () => scaler.shrink(bytes, 100, caller)))
    expect(all.map(made => made !== null)).toEqual([...Array(60).fill(true), ...Array(10).fill(false)])
    expect(await scaler.shrink(bytes, 100, caller)).not.toBeNull()
  })
})
