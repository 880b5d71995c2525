/** What counts in the estimate of a prompt: digits, and media in unknown members. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { PromptSize } from '../../../src/gateway/wire/prompt-size.ts'
import { estimateTokens } from '../../../src/gateway/wire/usage.ts'
import { digitsOf } from '../../../src/platform/values/digits.ts'
import { propertyRuns } from '../../harness/property-runs.ts'

const base64 = 'iVBORw0KGgo='.repeat(1000)
const beside = 'data:image/png;base64,'

describe('digits of a prompt', () => {
  test('each digit of a long prompt counts as a token, and may be joined with others, so it counts as possibly unread beyond its bytes', () => {
    const table = '10000001,'.repeat(4000)
    const words = new PromptSize(0)
    words.text('parcel under the stair '.repeat(2000))
    const size = new PromptSize(0)
    size.text(table)
    expect(size.estimate).toBe(estimateTokens(table.length) + size.digitTokens)
    expect(size.digitTokens).toBe(estimateTokens(4000 * 8 * 2))
    expect(size.unreadTokens).toBe(size.digitTokens)
    expect([words.digitTokens, words.unreadTokens]).toEqual([0, 0])
  })

  test('digits of a short prompt count as their bytes, also in many small parts until the parts are long together', () => {
    const size = new PromptSize(0)
    for (let part = 0; part < 20; part++) size.text('1'.repeat(100))
    expect([size.estimate, size.digitTokens]).toEqual([estimateTokens(2000), 0])
    for (let part = 0; part < 80; part++) size.text('1'.repeat(100))
    expect(size.estimate).toBeGreaterThanOrEqual(10_000 - estimateTokens(2048 * 2))
  })

  test('the fast count agrees with a look at each character, for every script and length', () => {
    const slow = (text: string) => [...text].filter(char => char >= '0' && char <= '9').length
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom('0', '9', '5', '/', ':', 'a', ' ', 'ı', 'а', 'é', 'ठ', '１', '😀', '\ud83d', '\u0000', '¹'), { maxLength: 60 }),
        parts => {
          const text = parts.join('')
          for (const whole of [text, text.repeat(400)]) expect(digitsOf(whole)).toBe(slow(whole))
        },
      ),
      { numRuns: propertyRuns(200) },
    )
    for (const length of [1, 3, 4, 799, 800, 801, 10_921, 10_922, 10_923, 100_000]) expect(digitsOf('7'.repeat(length))).toBe(length)
  })
})

describe('media in unknown members', () => {
  test.each<[form: string, value: Record<string, string>, textBytes: number]>([
    ['base64', { url: beside + base64 }, 0],
    ['base64 with a name that JSON escapes', { url: `data:image/png;name="é\u0001";base64,${base64}` }, 0],
    ['base64 in lines', { url: `${beside}${`${base64}\r\n`.repeat(3)}` }, 0],
    ['base64 of a type beside it', { media_type: 'image/png', data: base64 }, 0],
    ['base64 of a text', { url: `data:text/plain;base64,${base64}` }, (base64.length * 3) / 4],
    ['what is not base64', { url: `${beside}${base64}é` }, beside.length + base64.length + 2],
    ['what is short', { url: `${beside}iVBORw0KGgo=` }, 0],
  ])('%s counts as the text of its JSON, and as media', (_form, value, textBytes) => {
    const size = new PromptSize(0)
    size.unknown('x', { ...value, after: 'text' })
    const jsonBytes = Buffer.byteLength(JSON.stringify({ ...value, after: 'text' }))
    expect(size.estimate - size.digitTokens - (size.media?.tokens ?? 0)).toBe(estimateTokens(1 + jsonBytes + textBytes))
    expect(size.unreadTokens - size.digitTokens).toBe(estimateTokens(1 + jsonBytes + textBytes))
  })
})
