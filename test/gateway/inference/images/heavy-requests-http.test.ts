/** Large image requests for several pictures from a provider that draws one picture in each request. */
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
  ])('one request body serves all pictures: it is written as JSON once (%s%s)', async more => {
    providers.reset()
    providers.answer(() => ({ body: { created: 1, data: [{ b64_json: base64 }] } }))
    const body = `{"model":"dall-e-3","upstream_key":"${keys.openai}","prompt":"a boat","n":4,${more}"x":"${long}"}`
    const stringify = vi.spyOn(JSON, 'stringify')
    const { status, json } = await app.call('POST', '/v1/images/generations', body)
    const written = stringify.mock.results.filter(({ value }) => typeof value === 'string' && value.length > longChars).length
    stringify.mockRestore()
    expect([status, json.data.length, written]).toEqual([200, 4, 1])
    const sent = providers.of('openai').map(({ raw }) => raw)
    expect(sent).toHaveLength(4)
    for (const raw of sent) expect(raw.equals(sent[0] as Buffer)).toBe(true)
    const text = String(sent[0])
    expect([text.includes(long), text.includes(`${more}"x"`)]).toEqual([true, true])
  })
})
