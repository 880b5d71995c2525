import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../harness/app.ts'

const hello = [{ role: 'user', content: 'Hello there' }]
// biome-ignore lint/suspicious/noExplicitAny: chunks of a stream are arbitrary JSON.
const chunksOf = (text: string): any[] => text.split('\n\n').flatMap(event => (event.startsWith('data: {') ? [JSON.parse(event.slice(6))] : []))

describe('the cost that a reply reports', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({ dialects: true })
  })
  afterAll(() => app.stop())
  beforeEach(() => {
    for (const upstream of [app.alpha, app.beta, app.indus]) upstream.reset()
  })
  const post = (path: string, body: object, options = {}) => app.call('POST', path, body, options)
  const charged = async (call: () => Promise<{ headers: Headers; text: string }>) => {
    const totals = async () => (await app.call('GET', '/v1/usage')).json.totals
    const before = await totals()
    const reply = await call()
    const after = await totals()
    const inr = (name: string): number => Number(((Number(after[name]) - Number(before[name])) / 1e6).toFixed(6))
    return { reply, costInr: inr('cost_uinr') }
  }
  const chat = { model: 'test-model', messages: hello }

  test('COST-01 every metered reply reports its exact cost and time, and a stream reports them in its usage chunk and changes no other chunk', async () => {
    const whole = [
      ['/v1/chat/completions', chat],
      ['/v1/chat/completions', { ...chat, model: 'anthropic-model' }],
      ['/v1/embeddings', { model: 'test-embed', input: 'a text' }],
      ['/v1/messages', { ...chat, max_tokens: 50 }],
      ['/v1/responses', { model: 'test-model', input: 'hi' }],
    ] as const
    for (const [path, body] of whole) {
      const { reply, costInr } = await charged(() => post(path, body))
      expect(costInr, path).toBeGreaterThan(0)
      expect(Number(reply.headers.get('x-br-cost-inr')), path).toBe(costInr)
      expect(reply.headers.get('x-br-latency-ms'), path).toMatch(/^\d+$/)
    }
    for (const model of ['test-model', 'anthropic-model']) {
      const { reply, costInr } = await charged(() => post('/v1/chat/completions', { ...chat, model, stream: true }))
      expect(reply.headers.get('x-br-cost-inr')).toBeNull()
      expect(reply.headers.get('x-br-latency-ms')).toMatch(/^\d+$/)
      const chunks = chunksOf(reply.text)
      expect(chunks.slice(0, -1).some(chunk => 'x_br' in chunk)).toBe(false)
      expect(chunks.at(-1)).toMatchObject({
        usage: expect.any(Object),
        x_br: { cost_inr: costInr, value_inr: costInr, provider: reply.headers.get('x-br-provider') },
      })
      expect(costInr).toBeGreaterThan(0)
    }
    const own = { ...chat, provider: 'alpha', upstream_key: 'sk-my-own' }
    const { reply, costInr } = await charged(() => post('/v1/chat/completions', own))
    expect([reply.headers.get('x-br-cost-inr'), costInr]).toEqual(['0', 0])
    const streamed = chunksOf((await post('/v1/chat/completions', { ...own, stream: true })).text).at(-1)
    expect(streamed.x_br).toEqual({ cost_inr: 0, value_inr: expect.any(Number), provider: 'alpha' })
    expect(streamed.x_br.value_inr).toBeGreaterThan(0)
  })

  test("a relayed stream differs from the provider's bytes only by the bill", async () => {
    const chunk = (more: object): string => `data: ${JSON.stringify({ id: 'c', model: 'same-id', choices: [], ...more })}\n\n`
    // A comment before the first chunk is not passed on, because the stream has not begun.
    const before = `${chunk({ choices: [{ index: 0, delta: { content: 'é' }, finish_reason: null }] })}: hello\n\n`
    app.alpha.script({ rawStream: [`: waiting\n\n${before}`, chunk({ usage: { prompt_tokens: 100, completion_tokens: 10 } }), 'data: [DONE]\n\n'] })
    const { text } = await post('/v1/chat/completions', { ...chat, model: 'same-id', stream: true })
    const bill = JSON.stringify({ cost_inr: 0.0014, value_inr: 0.0014, provider: 'alpha' })
    expect(text).toBe(`${before}${chunk({ usage: { prompt_tokens: 100, completion_tokens: 10 } }).replace('}}\n', `},"x_br":${bill}}\n`)}data: [DONE]\n\n`)
  })

  test('a stream reports the cost that is charged, also without reported usage, with usage above the limit, and with include_usage false', async () => {
    app.alpha.script([{ usage: null }, { usage: { prompt_tokens: 10, completion_tokens: 900 } }])
    for (const more of [{}, { max_tokens: 20 }]) {
      const { reply, costInr } = await charged(() => post('/v1/chat/completions', { ...chat, ...more, stream: true }))
      expect(chunksOf(reply.text).at(-1).x_br.cost_inr).toBe(costInr)
      expect(costInr).toBeGreaterThan(0)
    }
    for (const model of ['test-model', 'anthropic-model']) {
      const { reply, costInr } = await charged(() => post('/v1/chat/completions', { ...chat, model, stream: true, stream_options: { include_usage: false } }))
      expect(reply.text).not.toContain('"usage":{')
      expect(reply.text).not.toContain('x_br')
      expect(reply.text.trimEnd().endsWith('data: [DONE]')).toBe(true)
      expect(costInr).toBeGreaterThan(0)
    }
  })

  test('errors and unmetered replies report no cost', async () => {
    app.alpha.script([{ status: 400, body: { error: { message: 'no' } } }])
    for (const reply of [
      await post('/v1/chat/completions', chat),
      await post('/v1/chat/completions', { ...chat, model: 'nothing' }),
      await app.call('GET', '/v1/models'),
    ])
      expect(reply.headers.get('x-br-cost-inr')).toBeNull()
  })
})
