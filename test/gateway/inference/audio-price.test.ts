/** Sound in a prompt is charged at its own price. A route without such a price accepts no sound on the platform key. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { defaultOperatorFile, startApp, type TestApp } from '../../harness/app.ts'
import { usageRows } from '../../harness/usage-rows.ts'

const own = { upstream_key: 'sk-my-own-key-0001' }
const price = { input_inr_per_mtok: 10, output_inr_per_mtok: 40, cached_input_inr_per_mtok: 1, source: 'test', as_of: '2026-01-01' }
const part = { type: 'input_audio', input_audio: { data: 'UklGRiQAAABXQVZF', format: 'wav' } }
const messages = [{ role: 'user', content: [{ type: 'text', text: 'What is said?' }, part] }]

describe('sound in a prompt', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({
      dialects: true,
      operatorFile: urls => {
        const file = defaultOperatorFile(urls)
        const hearing = (id: string, provider: string, dialect: string, more: object = {}) => ({
          id,
          kind: 'chat',
          context_length: 100_000,
          routes: [{ ...price, provider, dialect, upstream_model: `${id}-up`, ...more }],
        })
        return {
          providers: file.providers,
          models: [
            ...file.models,
            hearing('gem-hears', 'gem', 'gemini', { audio_input_inr_per_mtok: 100 }),
            hearing('gem-deaf', 'gem', 'gemini'),
            hearing('open-hears', 'alpha', 'openai', { audio_input_inr_per_mtok: 100 }),
            hearing('open-deaf', 'alpha', 'openai'),
          ],
        }
      },
    })
  })
  afterAll(() => app.stop())
  beforeEach(() => {
    for (const upstream of [app.alpha, app.others.gem]) upstream.reset()
  })
  const ask = (body: object) => app.call('POST', '/v1/chat/completions', { messages, ...body })

  test('sound tokens that the provider reports are charged at the price of sound, streamed or not', async () => {
    const gemini = {
      promptTokenCount: 1000,
      candidatesTokenCount: 10,
      totalTokenCount: 1010,
      cachedContentTokenCount: 950,
      promptTokensDetails: [
        { modality: 'TEXT', tokenCount: 200 },
        { modality: 'AUDIO', tokenCount: 800 },
      ],
    }
    const openai = { prompt_tokens: 1000, completion_tokens: 10, total_tokens: 1010, prompt_tokens_details: { cached_tokens: 950, audio_tokens: 800 } }
    for (const stream of [false, true])
      for (const [model, upstream, usage] of [
        ['gem-hears', app.others.gem, gemini],
        ['open-hears', app.alpha, openai],
      ] as const) {
        upstream.script({ chunks: ['words'], usage })
        const reply = await ask({ model, stream })
        expect(reply.status, reply.text).toBe(200)
        // 800 sound tokens at ₹100, 200 text tokens at ₹1 because they were cached, and 10 output tokens at ₹40 a million.
        expect((await usageRows(app))[0], `${model} ${stream}`).toMatchObject({ promptTokens: 1000n, valueUinr: 80_000n + 200n + 400n })
      }
  })

  test('when the provider does not report sound tokens, all prompt tokens above the text estimate count as sound', async () => {
    app.alpha.script({ chunks: ['words'], usage: { prompt_tokens: 1000, completion_tokens: 10, total_tokens: 1010 } })
    await ask({ model: 'open-hears' })
    const { valueUinr } = (await usageRows(app))[0] ?? {}
    expect(valueUinr).toBeGreaterThan(98_000n)
    expect(valueUinr).toBeLessThan(100_400n)
  })

  test('sound without a price is refused on the platform key before a provider is called, and is sent on an own key', async () => {
    for (const [model, upstream] of [
      ['gem-deaf', app.others.gem],
      ['open-deaf', app.alpha],
    ] as const) {
      const refused = await ask({ model })
      expect([refused.status, refused.json.error.code, refused.json.error.message]).toEqual([400, 'bad_request', expect.stringContaining('Sound has no price')])
      expect([upstream.requests.length, (await usageRows(app))[0]?.valueUinr]).toEqual([0, 0n])
      expect((await ask({ model, ...own })).status).toBe(200)
    }
  })
})
