/** The charge for each kind of unit, calculated by hand with prices that need rounding, and compared with the usage row and the header. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../harness/app.ts'
import { usageRows } from '../../harness/usage-rows.ts'
import { wavOf } from '../../harness/wav.ts'

const dated = { source: 'test', as_of: '2026-01-01' }
const on = (prices: object) => [{ provider: 'alpha', upstream_model: 'odd', ...prices, ...dated }]
const models = [
  {
    id: 'odd-chat',
    kind: 'chat',
    routes: on({ input_inr_per_mtok: 10.37, cached_input_inr_per_mtok: 1.003, cache_write_inr_per_mtok: 12.96, output_inr_per_mtok: 41.5 }),
  },
  { id: 'odd-embed', kind: 'embedding', routes: on({ input_inr_per_mtok: 1.7, output_inr_per_mtok: 0 }) },
  { id: 'odd-image', kind: 'image', inr_per_image: 3.333333, routes: [{ provider: 'alpha', upstream_model: 'odd' }] },
  { id: 'odd-ears', kind: 'transcription', routes: on({ inr_per_minute: 0.777 }) },
  { id: 'odd-voice', kind: 'speech', routes: on({ inr_per_million_characters: 49.99 }) },
]

let app: TestApp
beforeAll(async () => {
  app = await startApp({
    env: { CIRCUIT_FAILURES: '1000' },
    operatorFile: urls => ({ providers: [{ id: 'alpha', base_url: urls.alpha }], models }),
  })
})
afterAll(() => app.stop())
beforeEach(() => app.alpha.reset())

const post = (path: string, body: object): Promise<Response> =>
  fetch(`${app.baseUrl}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${app.key}`, ...(body instanceof FormData ? {} : { 'content-type': 'application/json' }) },
    body: body instanceof FormData ? body : JSON.stringify(body),
  })

/** Checks that the usage row has exactly this amount, and the header too if the amount is known before the reply begins. */
async function charged(reply: Response, uinr: bigint, isToldBefore: boolean): Promise<void> {
  expect(reply.status, await reply.text()).toBe(200)
  const [row] = await usageRows(app)
  expect([row?.costUinr, row?.valueUinr]).toEqual([uinr, uinr])
  if (isToldBefore) expect(reply.headers.get('x-br-cost-inr')).toBe(String(Number(uinr) / 1e6))
}

const messages = [{ role: 'user', content: 'Hi' }]
const usage = {
  prompt_tokens: 1001,
  completion_tokens: 7,
  total_tokens: 1008,
  prompt_tokens_details: { cached_tokens: 333, cache_write_tokens: 77 },
  completion_tokens_details: { reasoning_tokens: 3 },
}
/** 591 fresh × 10.37 = 6,128.67, 333 × 1.003 = 333.999, 77 × 12.96 = 997.92, 7 × 41.5 = 290.5. The sum is 7,751.089 and is rounded once. */
const chatUinr = 7751n

test('plain tokens, cached tokens, tokens written to a cache and reasoning tokens are charged at their prices', async () => {
  app.alpha.script([{ usage }])
  await charged(await post('/v1/chat/completions', { model: 'odd-chat', messages }), chatUinr, true)
})

test('a streamed call costs the same as a whole one', async () => {
  app.alpha.script([{ usage }])
  const reply = await post('/v1/chat/completions', { model: 'odd-chat', messages, stream: true })
  const text = await reply.clone().text()
  expect(text).toContain('"cost_inr":0.007751')
  await charged(reply, chatUinr, false)
})

test('a cost is rounded half up to whole micro-rupees', async () => {
  for (const [tokens, uinr] of [
    [5, 9n], // 8.5
    [3, 5n], // 5.1
    [1, 2n], // 1.7
  ] as const) {
    app.alpha.script([
      { body: { object: 'list', model: 'odd', data: [{ object: 'embedding', index: 0, embedding: [0.5] }], usage: { prompt_tokens: tokens } } },
    ])
    await charged(await post('/v1/embeddings', { model: 'odd-embed', input: 'x' }), uinr, true)
  }
})

test('images are charged by the delivered number, not the requested number', async () => {
  const url = 'https://pictures.example.test/1.png'
  app.alpha.script([{ body: { created: 1, data: [{ url }, { url }] } }])
  await charged(await post('/v1/images/generations', { model: 'odd-image', prompt: 'x', n: 3 }), 6_666_666n, true)
})

test('audio is charged by the second, and a started second counts in full', async () => {
  const form = new FormData()
  form.append('model', 'odd-ears')
  form.append('file', new Blob([new Uint8Array(wavOf(1))]), 'a.wav')
  // 7.2 seconds cost 8 × 12,950.
  app.alpha.script([{ body: { text: 'x', usage: { type: 'duration', seconds: 7.2 } } }])
  await charged(await post('/v1/audio/transcriptions', form), 103_600n, true)
})

test('speech is charged by the character: 5 code points × 49.99 = 249.95', async () => {
  app.alpha.script([{ headers: { 'content-type': 'audio/mpeg' }, rawStream: [Buffer.from('sound')] }])
  await charged(await post('/v1/audio/speech', { model: 'odd-voice', input: 'नमि🙏a', voice: 'v' }), 250n, true)
})
