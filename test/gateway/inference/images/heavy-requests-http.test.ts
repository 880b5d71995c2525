/** Large image requests for several pictures from a provider that draws one picture in each request, and large replies. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { startApp, type TestApp } from '../../../harness/app.ts'
import { base64, type ImageProviders, keys, startImageProviders } from './image-providers.ts'

const longChars = 6_000_000
const long = 'x'.repeat(longChars)

describe('large image requests', () => {
  let app: TestApp
  let providers: ImageProviders
  beforeAll(async () => {
    providers = await startImageProviders()
    app = await startApp({ env: { ...providers.env, CIRCUIT_FAILURES: '1000' } })
    providers.answer(() => ({ body: { created: 1, data: [{ b64_json: base64 }] } }))
  })
  afterAll(async () => {
    await app.stop()
    await providers.close()
  })

  test.each([
    ['', 'no number to restore'],
    ['"y":12345678901234567890123,', ' is a number to restore'],
  ])('one request body serves all pictures: it is written as JSON in pieces (%s%s)', async more => {
    providers.reset()
    providers.answer(() => ({ body: { created: 1, data: [{ b64_json: base64 }] } }))
    const body = `{"model":"dall-e-3","upstream_key":"${keys.openai}","prompt":"a boat","n":4,${more}"x":"${long}"}`
    const stringify = vi.spyOn(JSON, 'stringify')
    const { status, json } = await app.call('POST', '/v1/images/generations', body)
    const written = stringify.mock.results.filter(({ value }) => typeof value === 'string' && value.length > longChars / 2).length
    const pieces = stringify.mock.results.filter(({ value }) => typeof value === 'string' && value.length > longChars / 8).length
    stringify.mockRestore()
    // The body has six long pieces, and they are written once.
    expect([status, json.data.length, written, pieces]).toEqual([200, 4, 0, 6])
    const sent = providers.of('openai').map(({ raw }) => raw)
    expect(sent).toHaveLength(4)
    for (const raw of sent) expect(raw.equals(sent[0] as Buffer)).toBe(true)
    const text = String(sent[0])
    expect([text.includes(long), text.includes(`${more}"x"`)]).toEqual([true, true])
  })

  test('HARD-03 a reply of large pictures is parsed and written in pieces, and keeps every byte of them', async () => {
    providers.reset()
    const pictures = ['A', 'B', 'C', 'D'].map(letter => letter.repeat(longChars / 2))
    const reply = Buffer.from(JSON.stringify({ created: 7, data: pictures.map(picture => ({ b64_json: picture, revised_prompt: 'a "boat" \u{1f6f6}' })) }))
    providers.answer(() => ({ body: reply }))
    const isLong = (text: unknown): boolean => typeof text === 'string' && text.length >= longChars / 2
    const [stringify, parse] = [vi.spyOn(JSON, 'stringify'), vi.spyOn(JSON, 'parse')]
    const body = { model: 'gpt-image-1', upstream_key: keys.openai, prompt: 'a boat', n: 4 }
    const { status, json } = await app.call('POST', '/v1/images/generations', body)
    const written = stringify.mock.results.filter(({ value }) => isLong(value)).length
    const parsed = parse.mock.calls.filter(([text]) => isLong(text)).length
    stringify.mockRestore()
    parse.mockRestore()
    // The client of this test parses the whole reply.
    expect([status, written, parsed]).toEqual([200, 0, 1])
    expect(json.data.map((each: { b64_json: string }) => each.b64_json)).toEqual(pictures)
    expect([json.created, json.data[3].revised_prompt]).toEqual([7, 'a "boat" \u{1f6f6}'])
  })
})
