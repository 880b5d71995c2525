/** Calls that would cost more than is held and charged: what a provider bills beside the tokens, names that stand twice, several answers. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../harness/app.ts'
import { usageRows } from '../../harness/usage-rows.ts'

const hello = [{ role: 'user', content: 'hello' }]

describe('calls that would cost more than the tokens', () => {
  let app: TestApp
  let cookie: string
  beforeAll(async () => {
    app = await startApp({ dialects: true })
    cookie = await app.signIn()
  })
  afterAll(() => app.stop())
  beforeEach(() => {
    for (const upstream of [app.alpha, app.others.claude, app.others.gem, app.others.resp]) upstream.reset()
  })
  const post = (path: string, body: object | string, options: { token?: string; headers?: Record<string, string> } = {}) =>
    app.call('POST', path, body, { ...options, headers: { 'content-type': 'application/json', ...options.headers } })

  test('searches and dearer tiers are not sent with the key of the platform, and are named as dropped', async () => {
    const dear = { service_tier: 'priority', web_search_options: {}, search_parameters: { mode: 'on' }, plugins: [{ id: 'web' }] }
    for (const [path, model, body, upstream] of [
      ['/v1/chat/completions', 'openai-model', { messages: hello }, app.alpha],
      ['/v1/chat/completions', 'responses-model', { messages: hello }, app.others.resp],
      ['/v1/responses', 'responses-model', { input: 'hello' }, app.others.resp],
      ['/v1/responses', 'openai-model', { input: 'hello' }, app.alpha],
    ] as const) {
      const reply = await post(path, { model, ...body, ...dear })
      expect(reply.status, reply.text).toBe(200)
      for (const name of Object.keys(dear)) {
        expect(upstream.requests.at(-1)?.json, `${path} ${model} ${name}`).not.toHaveProperty(name)
        expect(reply.headers.get('x-br-dropped-params'), `${path} ${model}`).toContain(name)
      }
    }
    const plain = await post('/v1/chat/completions', { model: 'openai-model', messages: hello, service_tier: 'flex' })
    expect([app.alpha.requests.at(-1)?.json?.['service_tier'], plain.headers.get('x-br-dropped-params')]).toEqual(['flex', null])
    await post('/v1/chat/completions', { model: 'openai-model', messages: hello, ...dear, upstream_key: 'sk-my-own-key-0001' })
    expect(app.alpha.requests.at(-1)?.json).toMatchObject(dear)
  })

  test('tools that a provider runs need an own key; on the key of the platform nothing is dialed or charged', async () => {
    const body = { model: 'openai-model', messages: hello, tools: [{ type: 'builtin_function', function: { name: '$web_search' } }] }
    const refused = await post('/v1/chat/completions', body)
    expect([refused.status, refused.json.error.code]).toEqual([400, 'bad_request'])
    expect(refused.json.error.message).toContain('builtin_function')
    expect([app.alpha.requests.length, (await usageRows(app))[0]?.outcome, (await usageRows(app))[0]?.valueUinr]).toEqual([0, 'failed', 0n])
    expect((await post('/v1/chat/completions', { ...body, upstream_key: 'sk-my-own-key-0001' })).status).toBe(200)
  })

  test('a messages call cannot ask for dearer tokens on the key of the platform', async () => {
    for (const dear of [{ speed: 'fast' }, { inference_geo: 'us' }]) {
      const body = { model: 'anthropic-model', max_tokens: 20, messages: hello, ...dear }
      const refused = await post('/v1/messages', body)
      expect([refused.status, refused.json.error.message]).toEqual([400, expect.stringContaining(Object.keys(dear)[0] ?? '')])
    }
    expect(app.others.claude.requests).toEqual([])
    expect((await post('/v1/messages', { model: 'anthropic-model', max_tokens: 20, messages: hello, speed: 'standard' })).status).toBe(200)
  })

  test('a duplicate member is sent once, with the value that the gateway read', async () => {
    const twice = (name: string, first: unknown, second: unknown, rest: object): string =>
      `{${JSON.stringify(name)}:${JSON.stringify(first)},${JSON.stringify(rest).slice(1, -1)},${JSON.stringify(name)}:${JSON.stringify(second)}}`
    const paid = [{ type: 'web_search_20250305', name: 'web_search' }]
    const own = [{ name: 'f', input_schema: { type: 'object' } }]
    const messages = { model: 'anthropic-upstream', max_tokens: 20, messages: hello }
    const long = [{ role: 'user', content: 'x'.repeat(9000) }]
    for (const [path, model, name, first, second, rest] of [
      ['/v1/messages', 'anthropic-model', 'tools', paid, own, messages],
      ['/v1/messages', 'anthropic-model', 'speed', 'fast', 'standard', messages],
      ['/v1/messages', 'anthropic-model', 'messages', long, hello, { max_tokens: 20 }],
      ['/v1/messages', 'anthropic-model', 'system', long[0]?.content, 'short', messages],
      ['/v1/messages', 'anthropic-model', 'max_tokens', 8000, 20, { messages: hello }],
      ['/v1/chat/completions', 'same-id', 'messages', long, hello, {}],
      ['/v1/chat/completions', 'same-id', 'n', 8, 1, { messages: hello }],
      ['/v1/chat/completions', 'same-id', 'service_tier', 'priority', 'auto', { messages: hello }],
      ['/v1/responses', 'responses-model', 'input', long[0]?.content, 'short', {}],
      ['/v1/responses', 'responses-model', 'background', true, false, { input: 'hi' }],
    ] as const) {
      const upstream = path === '/v1/messages' ? app.others.claude : path === '/v1/responses' ? app.others.resp : app.alpha
      const reply = await post(path, twice(name, first, second, { ...rest, model }))
      expect(reply.status, `${path} ${name}: ${reply.text}`).toBe(200)
      const sent = upstream.requests.at(-1)
      expect(sent?.raw.toString().split(`"${name}"`), `${path} ${name}`).toHaveLength(2)
      expect(sent?.json?.[name]).toEqual(second)
    }
  })

  test('a strict budget holds for every requested answer', async () => {
    const { key, keyId } = await app.newKey()
    // 8192 tokens at ₹40 a million are ₹0.32768 an answer.
    await app.call('POST', '/me/budgets', { scope: 'key', target_id: keyId, monthly_budget_inr: 1, strict: true }, { cookie })
    const ask = (n: number, stream: boolean) => post('/v1/chat/completions', { model: 'openai-model', messages: hello, n, stream }, { token: key })
    for (const stream of [false, true]) {
      const refused = await ask(4, stream)
      expect([refused.status, refused.json?.error?.code]).toEqual([429, 'budget_exceeded'])
      expect((await ask(3, stream)).status).toBe(200)
    }
  })
})
