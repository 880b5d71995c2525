import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { imagesMax, imageTypeOf, parseImages } from '../../../src/gateway/wire/images.ts'
import { GatewayError } from '../../../src/platform/errors.ts'
import { propertyRuns } from '../../harness/property-runs.ts'

const outcome = (body: Record<string, unknown>) => {
  try {
    return parseImages(body)
  } catch (error) {
    if (error instanceof GatewayError) return error
    throw error
  }
}

describe('an images request', () => {
  test('any input is either refused with bad_request or is a valid request', () => {
    const odd = fc.oneof(fc.anything(), fc.constantFrom(null, '', 0, -1, 4, 5, 1.5, '1024x1024', 'url', 'b64_json', 'auto', '1x1', '99999x99999', '0x0'))
    const body = fc.record(
      { prompt: fc.oneof(fc.string(), odd), n: odd, size: odd, response_format: odd, quality: odd, user: odd, model: odd, stream: odd, extra: odd },
      { requiredKeys: [] },
    )
    fc.assert(
      fc.property(body, given => {
        const found = outcome(given)
        if (found instanceof GatewayError) {
          expect(found.errorName).toBe('bad_request')
          return
        }
        const { params } = found
        expect(params.prompt.trim()).not.toBe('')
        expect(params.n >= 1 && params.n <= imagesMax && Number.isInteger(params.n)).toBe(true)
        expect(params.size !== null && params.size.width >= 1 && params.size.height >= 1).toBe(true)
        expect(['url', 'b64_json']).toContain(params.format)
        expect(Object.keys(params.others).filter(name => name in { prompt: 0, n: 0, size: 0, model: 0, stream: 0 })).toEqual([])
      }),
      { numRuns: propertyRuns(2000) },
    )
  })

  test('a well-formed request is read unchanged', () => {
    const edge = fc.integer({ min: 1, max: 99_999 })
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1e9 }), edge, edge, fc.constantFrom('url', 'b64_json'), (n, width, height, response_format) => {
        const found = parseImages({ prompt: 'x', n, size: `${width}x${height}`, response_format })
        expect(found.params).toMatchObject({ n: Math.min(n, imagesMax), size: { width, height }, format: response_format, asked: { size: true, format: true } })
      }),
    )
  })

  test('no error message repeats a given value', () => {
    const secret = 'x7-secret-value'
    for (const name of ['n', 'size', 'response_format', 'stream']) {
      const found = outcome({ prompt: 'p', [name]: secret })
      expect(found).toBeInstanceOf(GatewayError)
      expect((found as GatewayError).message).not.toContain(secret)
    }
  })

  test('the type of a picture is read from its first bytes', () => {
    expect(imageTypeOf(Buffer.from('89504e470d0a1a0a', 'hex'))).toBe('image/png')
    expect(imageTypeOf(Buffer.from('ffd8ffe0', 'hex'))).toBe('image/jpeg')
    expect(imageTypeOf(Buffer.from('RIFF....WEBPVP8 '))).toBe('image/webp')
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), bytes => {
        const isKnown = bytes[0] === 0x89 || bytes[0] === 0xff || bytes[0] === 0x52
        expect(isKnown || imageTypeOf(bytes) === null).toBe(true)
      }),
    )
  })
})
