/** A long picture in an unknown member counts as its JSON, although the JSON is not written. */
import { describe, expect, test } from 'vitest'
import { PromptSize } from '../../../src/gateway/wire/prompt-size.ts'
import { estimateTokens } from '../../../src/gateway/wire/usage.ts'

const base64 = 'iVBORw0KGgo='.repeat(1000)
const beside = 'data:image/png;base64,'

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
    expect(size.estimate - (size.media?.tokens ?? 0)).toBe(estimateTokens(1 + jsonBytes + textBytes))
    expect(size.unreadTokens).toBe(estimateTokens(1 + jsonBytes + textBytes))
  })
})
