/** Calls that could cost more than is held and charged: extras that a provider bills in addition to tokens, duplicate names, several answers. */
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

  test('on the platform key, searches and more expensive service tiers are not sent, and are named as dropped', async () => {
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

  test('tools that a provider runs need an own key, and on the platform key the call is refused without a charge', async () => {
    const body = { model: 'openai-model', messages: hello, tools: [{ type: 'builtin_function', function: { name: '$web_search' } }] }
    const refused = await post('/v1/chat/completions', body)
    expect([refused.status, refused.json.error.code]).toEqual([400, 'bad_request'])
    expect(refused.json.error.message).toContain('builtin_function')
    expect([app.alpha.requests.length, (await usageRows(app))[0]?.outcome, (await usageRows(app))[0]?.valueUinr]).toEqual([0, 'failed', 0n])
    expect((await post('/v1/chat/completions', { ...body, upstream_key: 'sk-my-own-key-0001' })).status).toBe(200)
  })

  describe('items of the responses format', () => {
    const go = { role: 'user', content: 'go' }
    const look = { type: 'function', name: 'look', parameters: { type: 'object', properties: {} } }
    const own = { upstream_key: 'sk-my-own-key-0001' }
    const adding = (...tools: readonly object[]) => ({ type: 'additional_tools', role: 'developer', tools })
    const ask = (item: object, more: object = {}) => post('/v1/responses', { model: 'responses-model', input: [go, item], ...more })
    const called = () => app.alpha.requests.length + app.others.resp.requests.length

    test('tools that a provider runs are refused in every item, on every route and key', async () => {
      const paid = ['web_search', 'code_interpreter', 'image_generation', 'mcp', 'file_search', 'made_up']
      for (const type of paid)
        for (const item of [adding({ type }), { ...go, tools: [{ type }] }, adding({ type: 'namespace', name: 'n', tools: [look, { type }] })])
          for (const more of [{}, { model: 'openai-model' }, own]) {
            const reply = await ask(item, more)
            expect([reply.status, reply.json.error?.code], reply.text).toEqual([400, 'unsupported_operation'])
            expect(reply.json.error.message).toMatch(new RegExp(`"${type}" \\("input\\[1\\]\\.tools\\[0\\]`))
          }
      const many = await ask(adding({ type: 'namespace', name: 'n', tools: Array.from({ length: 2001 }, (_, index) => ({ ...look, name: `f${index}` })) }))
      expect([many.status, many.json.error?.message]).toEqual([400, expect.stringContaining('offers 2001 tools')])
      expect(called()).toBe(0)
    })

    test('additional tools of the client are offered on every route, and a web search next to them is left out', async () => {
      const item = adding(look)
      expect((await ask(item)).status).toBe(200)
      expect(app.others.resp.requests.at(-1)?.json?.['input']).toEqual([go, item])
      const searching = adding(look, { type: 'web_search' })
      for (const model of ['responses-model', 'openai-model']) {
        const reply = await ask(searching, { model })
        expect([reply.status, reply.headers.get('x-br-dropped-params')], reply.text).toEqual([200, 'tools.web_search'])
      }
      expect(app.others.resp.requests.at(-1)?.json?.['input']).toEqual([go, item])
      expect(app.alpha.requests.at(-1)?.json?.['tools']).toMatchObject([{ type: 'function', function: { name: 'look' } }])
    })

    test('an item of an unknown type needs an own key, and a content item does not', async () => {
      const listed = { type: 'mcp_list_tools', server_label: 'x', tools: [{ name: 'a', input_schema: {} }] }
      const others = ['compaction_trigger', 'program', 'mcp_approval_response', 'web_search_call', 'shell_call', 'made_up'].map(type => ({ type }))
      for (const item of [listed, ...others]) {
        const { type } = item
        const refused = await ask(item)
        expect([refused.status, refused.json.error?.code], type).toEqual([400, 'bad_request'])
        expect(refused.json.error.message).toContain(`"input[1]" is an item of the type "${type}"`)
      }
      expect(called()).toBe(0)
      for (const item of [listed, ...others]) expect((await ask(item, own)).status, item.type).toBe(200)
      for (const item of [
        { type: 'message', ...go },
        { ...go, type: null },
        { type: 'reasoning', id: 'rs_1', summary: [] },
        { type: 'function_call', call_id: 'c', name: 'look', arguments: '{}' },
        { type: 'custom_tool_call_output', call_id: 'c', output: 'x' },
        { type: 'tool_search_output', call_id: 'c', execution: 'client', tools: [look] },
        { type: 'compaction', encrypted_content: 'sealed' },
      ])
        expect((await ask(item)).status, JSON.stringify(item)).toBe(200)
    })
  })

  test('a messages call cannot request more expensive tokens on the platform key', async () => {
    for (const dear of [{ speed: 'fast' }, { inference_geo: 'us' }]) {
      const body = { model: 'anthropic-model', max_tokens: 20, messages: hello, ...dear }
      const refused = await post('/v1/messages', body)
      expect([refused.status, refused.json.error.message]).toEqual([400, expect.stringContaining(Object.keys(dear)[0] ?? '')])
    }
    expect(app.others.claude.requests).toEqual([])
    expect((await post('/v1/messages', { model: 'anthropic-model', max_tokens: 20, messages: hello, speed: 'standard' })).status).toBe(200)
  })

  test('a field that occurs twice is sent once, with the value that the gateway has read', async () => {
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

  test('a strict budget holds the cost of every requested answer', async () => {
    const { key, keyId } = await app.newKey()
    // 8192 tokens at ₹40 a million cost ₹0.32768 for each answer.
    await app.call('POST', '/me/budgets', { scope: 'key', target_id: keyId, monthly_budget_inr: 1, strict: true }, { cookie })
    const ask = (n: number, stream: boolean) => post('/v1/chat/completions', { model: 'openai-model', messages: hello, n, stream }, { token: key })
    for (const stream of [false, true]) {
      const refused = await ask(4, stream)
      expect([refused.status, refused.json?.error?.code]).toEqual([429, 'budget_exceeded'])
      expect((await ask(3, stream)).status).toBe(200)
    }
  })
})
