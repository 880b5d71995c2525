import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../harness/app.ts'
import type { UpstreamServer } from '../../harness/upstream-server.ts'

const sentBodies = (upstream: UpstreamServer) => upstream.requests.map(request => request.json)
const hello = [{ role: 'user', content: 'Hello there' }]

describe('POST /v1/chat/completions', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp()
  })
  afterAll(() => app.stop())
  beforeEach(() => {
    for (const upstream of [app.alpha, app.beta, app.indus]) upstream.reset()
  })
  const chat = (body: object, options = {}) => app.call('POST', '/v1/chat/completions', { model: 'test-model', messages: hello, ...body }, options)
  const usageRow = async () => (await app.call('GET', '/v1/usage')).json

  test('CHAT-01 CHAT-02 CHAT-16 a valid call returns a JSON chat completion with choices and usage', async () => {
    const reply = await chat({})
    expect(reply.status).toBe(200)
    expect(reply.headers.get('content-type')).toContain('application/json')
    expect(reply.json).toMatchObject({ object: 'chat.completion', id: expect.any(String), model: expect.any(String), usage: expect.any(Object) })
    expect(reply.json.choices[0]).toMatchObject({ index: 0, message: { role: 'assistant', content: expect.any(String) }, finish_reason: 'stop' })
  })

  test('CHAT-03 usage has integer prompt, completion and total tokens with a correct sum, even if the provider reports none', async () => {
    for (const usage of [undefined, { prompt_tokens: 7, completion_tokens: 5 }, null]) {
      app.alpha.reset()
      if (usage !== undefined)
        app.alpha.script([
          {
            body: {
              id: 'x',
              object: 'chat.completion',
              model: 'm',
              choices: [{ index: 0, message: { role: 'assistant', content: 'ok' }, finish_reason: 'stop' }],
              ...(usage === null ? {} : { usage }),
            },
          },
        ])
      const { usage: seen } = (await chat({})).json
      expect(Number.isInteger(seen.prompt_tokens) && Number.isInteger(seen.completion_tokens)).toBe(true)
      expect(seen.total_tokens).toBe(seen.prompt_tokens + seen.completion_tokens)
    }
  })

  test('CHAT-04 CHAT-05 thinking is in reasoning_content, and without thinking the field is absent', async () => {
    const answer = (message: object) => ({
      body: {
        id: 'x',
        object: 'chat.completion',
        model: 'm',
        choices: [{ index: 0, message: { role: 'assistant', content: '42', ...message }, finish_reason: 'stop' }],
        usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
      },
    })
    app.alpha.script([
      answer({ reasoning_content: 'six times seven' }),
      answer({ reasoning: 'six times seven' }),
      answer({ reasoning_content: null }),
      answer({}),
    ])
    for (const expected of ['six times seven', 'six times seven', undefined, undefined]) {
      const { message } = (await chat({})).json.choices[0]
      expect(message.content).toBe('42')
      expect('reasoning_content' in message ? message.reasoning_content : undefined).toBe(expected)
      expect('reasoning_content' in message).toBe(expected !== undefined)
    }
  })

  test('CHAT-06 CHAT-07 CHAT-08 CHAT-09 a malformed body is 400 bad_request that names the field, without a provider call or usage row', async () => {
    const before = await usageRow()
    const wrong: [string, object][] = [
      ['model', { model: undefined }],
      ['model', { model: 7 }],
      ['messages', { messages: undefined }],
      ['messages', { messages: 'hi' }],
      ['messages', { messages: [] }],
      ['role', { messages: [{ content: 'hi' }] }],
      ['content', { messages: [{ role: 'user' }] }],
      ['max_tokens', { max_tokens: 0 }],
      ['max_tokens', { max_tokens: -1 }],
      ['max_tokens', { max_tokens: 1.5 }],
      ['max_tokens', { max_tokens: '10' }],
      ['stream', { stream: 'yes' }],
    ]
    for (const [field, body] of wrong) {
      const reply = await chat(body)
      expect([reply.status, reply.json.error.code], JSON.stringify(body)).toEqual([400, 'bad_request'])
      expect(reply.json.error.message).toContain(field)
    }
    expect(app.alpha.requests).toHaveLength(0)
    expect((await usageRow()).totals.requests).toBe(before.totals.requests)
  })

  test('CHAT-08 an assistant message with tool calls may have null content', async () => {
    const call = { id: 'c1', type: 'function', function: { name: 'f', arguments: '{}' } }
    const reply = await chat({
      messages: [...hello, { role: 'assistant', content: null, tool_calls: [call] }, { role: 'tool', tool_call_id: 'c1', content: 'done' }],
    })
    expect(reply.status).toBe(200)
  })

  test('CHAT-10 CHAT-32 max_tokens and max_completion_tokens limit the charge, even if the provider reports more', async () => {
    const key = (await app.newKey()).key
    for (const name of ['max_tokens', 'max_completion_tokens']) {
      app.alpha.script([
        {
          body: {
            id: 'x',
            object: 'chat.completion',
            model: 'm',
            choices: [{ index: 0, message: { role: 'assistant', content: 'ok' }, finish_reason: 'length' }],
            usage: { prompt_tokens: 10, completion_tokens: 500, total_tokens: 510 },
          },
        },
      ])
      const before = await usageRow()
      expect((await chat({ [name]: 20 }, { token: key })).status).toBe(200)
      const after = await usageRow()
      expect(after.totals.completion_tokens - before.totals.completion_tokens).toBe(20)
    }
  })

  test('a provider that ignores max_completion_tokens is asked for no more output than the caller pays for', async () => {
    const words = Array.from({ length: 400 }, (_, index) => ` word${index}`)
    // Several providers read max_tokens only.
    app.alpha.script(({ json }) => ({ chunks: words.slice(0, Number(json?.['max_tokens'] ?? words.length)) }))
    for (const stream of [false, true]) {
      const reply = await chat({ max_completion_tokens: 3, stream })
      expect(reply.text.split('word').length - 1).toBe(3)
    }
  })

  test('CHAT-11 CHAT-13 CHAT-14 the provider gets unknown fields unchanged, max_tokens only when the caller set it, and no router field', async () => {
    const vendor = { temperature: 0.3, seed: 7, response_format: { type: 'json_object' }, vendor_thing: { deep: [1, 2] } }
    const router = { optimize: 'price', optimize_weights: { price: 1 }, exclude: ['beta'], data_policy: undefined, image_optimize: 'off', image_max_edge: 100 }
    expect((await chat({ ...vendor, ...router, provider: 'alpha', upstream_key: 'sk-my-own-key-0001' })).status).toBe(200)
    const [sent] = sentBodies(app.alpha)
    expect(sent).toEqual({ model: 'alpha-upstream', messages: hello, ...vendor })
    // On the platform key the cost of an unknown field is not known, so the field is left out and named as dropped.
    const { vendor_thing: _unknown, ...known } = vendor
    const reply = await chat({ ...vendor, ...router, provider: 'alpha' })
    expect([reply.status, reply.headers.get('x-br-dropped-params')]).toEqual([200, 'vendor_thing'])
    expect(sentBodies(app.alpha)[1]).toEqual({ model: 'alpha-upstream', messages: hello, ...known })
  })

  test('CHAT-13 a call that needs no change reaches the provider byte for byte', async () => {
    const text = '{ "model":"same-id",  "messages":[{"role":"user","content":"héllo"}], "temperature":1.0 }'
    const reply = await app.call('POST', '/v1/chat/completions', text, { headers: { 'content-type': 'application/json' } })
    expect(reply.status).toBe(200)
    expect(app.alpha.requests.at(-1)?.raw.toString()).toBe(text)
  })

  test('CHAT-12 tools are sent to the provider, and calls come back with arguments as text', async () => {
    const tools = [{ type: 'function', function: { name: 'lookup', description: 'd', parameters: { type: 'object', properties: {} } } }]
    const toolCalls = [{ id: 'call_1', type: 'function', function: { name: 'lookup', arguments: '{"q":"x"}' } }]
    app.alpha.script([
      {
        body: {
          id: 'x',
          object: 'chat.completion',
          model: 'm',
          choices: [{ index: 0, message: { role: 'assistant', content: null, tool_calls: toolCalls }, finish_reason: 'tool_calls' }],
          usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
        },
      },
    ])
    const reply = await chat({ tools })
    expect(sentBodies(app.alpha)[0]?.['tools']).toEqual(tools)
    expect(reply.json.choices[0]).toMatchObject({ finish_reason: 'tool_calls', message: { tool_calls: toolCalls } })
  })

  test('CHAT-15 reasoning_effort is sent to the provider', async () => {
    await chat({ reasoning_effort: 'low' })
    expect(sentBodies(app.alpha)[0]?.['reasoning_effort']).toBe('low')
  })

  test('CHAT-35 content parts keep their order', async () => {
    const content = [
      { type: 'text', text: 'a' },
      { type: 'image_url', image_url: { url: 'https://example.test/x.png' } },
      { type: 'text', text: 'b' },
    ]
    await chat({ messages: [{ role: 'user', content }] })
    expect((sentBodies(app.alpha)[0]?.['messages'] as { content: unknown }[] | undefined)?.[0]?.content).toEqual(content)
  })

  test('CHAT-27 the reply names the model that ran by its catalog id, also after a failover, and is otherwise unchanged', async () => {
    const text =
      '{ "id":"x","choices":[{"index":0,"message":{"role":"assistant","content":"\\"model\\":\\"beta-upstream\\""},"finish_reason":"stop"}], "model" : "beta-upstream" ,"object":"chat.completion","usage":{"prompt_tokens":1,"completion_tokens":1.0,"total_tokens":2}}\n'
    app.alpha.script([{ status: 500 }])
    app.beta.script([{ body: text, headers: { 'content-type': 'application/json' } }])
    const reply = await chat({})
    expect(reply.headers.get('x-br-provider')).toBe('beta')
    expect(reply.text).toBe(text.replace('"model" : "beta-upstream"', '"model" : "test-model"'))
    app.alpha.script([{ status: 500 }])
    const streamed = await chat({ stream: true })
    const models = streamed.text.split('\n\n').flatMap(event => (event.startsWith('data: {') ? [JSON.parse(event.slice(6)).model] : []))
    expect([streamed.headers.get('x-br-provider'), new Set(models)]).toEqual(['beta', new Set(['test-model'])])
    app.alpha.script([
      {
        body: {
          id: 'x',
          object: 'chat.completion',
          choices: [{ index: 0, message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' }],
          model: 'same-id-2026-01-01',
          usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
        },
      },
    ])
    expect((await chat({ model: 'same-id' })).json.model).toBe('same-id-2026-01-01')
  })

  test('a reply with status 200 that contains an error counts as a failure of the route, and the next route serves', async () => {
    const secret = 'alpha-platform-secret'
    app.alpha.script([{ body: { error: { message: `no capacity for ${secret}`, code: 529 } } }, { body: { error: { message: 'no capacity' } } }])
    expect((await chat({})).headers.get('x-br-provider')).toBe('beta')
    const pinned = await chat({ provider: 'alpha' })
    expect([pinned.status, pinned.json.error.code]).toEqual([502, 'all_routes_failed'])
    expect(pinned.json.error.message).toContain('no capacity')
    expect(pinned.text).not.toContain(secret)
    app.alpha.script([
      {
        body: {
          id: 'x',
          object: 'chat.completion',
          error: null,
          choices: [{ index: 0, message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' }],
          model: 'm',
        },
      },
    ])
    expect((await chat({})).headers.get('x-br-provider')).toBe('alpha')
  })

  test('CHAT-28 a model of another kind is 400 no_route', async () => {
    const reply = await chat({ model: 'test-embed' })
    expect([reply.status, reply.json.error.code]).toEqual([400, 'no_route'])
  })

  test('CHAT-31 the usage report counts a call with x-br-agent-id for that agent', async () => {
    await chat({}, { headers: { 'x-br-agent-id': 'nightly-triage' } })
    const { by_agent: agents } = await usageRow()
    expect(agents).toContainEqual(expect.objectContaining({ id: null, label: 'nightly-triage', requests: 1 }))
  })

  test('the text of a user appears in no log line and in no table', async () => {
    const marker = 'zebra-crossing-7731'
    await chat({ messages: [{ role: 'user', content: marker }] })
    app.alpha.script([{ status: 500, body: `cannot process ${marker}` }, { status: 500 }])
    await chat({ messages: [{ role: 'user', content: marker }], provider: 'alpha' })
    await app.gateway.app.limits.flushNow()
    expect(app.logLines.join('\n')).not.toContain(marker)
    expect(await app.dump()).not.toContain(marker)
  })

  test('ERR-11 an error repeats neither a credential nor the text of the user, even when the provider quotes both', async () => {
    const prompt = 'My neighbour at 12 Lake Road owes me money'
    const quoted = { error: { message: `cannot moderate "${prompt}" with key alpha-platform-secret: service overloaded` } }
    app.alpha.script({ status: 500, body: quoted })
    const reply = await chat({ messages: [{ role: 'user', content: prompt }], provider: 'alpha' })
    expect(reply.status).toBe(502)
    expect(reply.json.error.message).toContain('service overloaded')
    for (const part of ['neighbour', 'Lake Road', 'platform-secret']) expect(reply.text).not.toContain(part)
  })

  test('HDR-01 HDR-03 HDR-10 every reply has a request id, and x-br-provider is absent on errors before a provider is called', async () => {
    const served = await chat({})
    expect(served.headers.get('x-br-provider')).toBe('alpha')
    expect(served.headers.get('x-request-id')).toMatch(/^req_/)
    const refused = await chat({ model: 'nothing' })
    expect(refused.headers.get('x-br-provider')).toBeNull()
    expect(refused.headers.get('x-request-id')).toMatch(/^req_/)
    expect(refused.headers.get('x-request-id')).not.toBe(served.headers.get('x-request-id'))
  })

  test("HDR-12 HDR-13 the provider's own headers are not relayed, and the caller's credential and cookies never reach the provider", async () => {
    app.alpha.script([
      {
        headers: { 'set-cookie': 'a=b', server: 'upstream-thing', 'x-internal': '1' },
        body: { id: 'x', object: 'chat.completion', model: 'm', choices: [], usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } },
      },
    ])
    const reply = await chat({}, { headers: { cookie: 'session=mine', 'x-custom': 'secret' } })
    for (const name of ['set-cookie', 'server', 'x-internal']) expect(reply.headers.get(name)).toBeNull()
    const sent = app.alpha.requests.at(-1)
    expect(sent?.headers.authorization).toBe('Bearer alpha-platform-secret')
    expect(JSON.stringify(sent?.headers)).not.toContain(app.key)
    expect(sent?.headers.cookie).toBeUndefined()
    expect(sent?.headers['x-custom']).toBeUndefined()
  })

  test('HDR-11 x-br-agent-id is accepted on inference, memory and MCP, and checked on each', async () => {
    const list = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }
    const accept = { accept: 'application/json, text/event-stream' }
    for (const [label, status] of [
      ['ok name-1', 200],
      ['-dash', 400],
    ] as const) {
      expect((await app.call('GET', '/v1/me/whoami', undefined, { headers: { 'x-br-agent-id': label } })).status).toBe(status)
      expect((await app.call('GET', '/v1/me/memory/list', undefined, { headers: { 'x-br-agent-id': label } })).status).toBe(status === 200 ? 404 : 400)
      expect((await app.call('POST', '/mcp', list, { headers: { ...accept, 'x-br-agent-id': label } })).status).toBe(status)
    }
    expect((await chat({}, { headers: { 'x-br-agent-id': 'ok name-1' } })).status).toBe(200)
    for (const label of ['x'.repeat(101), 'a\tb', 'tab"quote', '-dash'])
      expect((await chat({}, { headers: { 'x-br-agent-id': label } })).status, label).toBe(400)
  })

  test('ERR-03 a body over the limit is 413 payload_too_large in the error envelope', async () => {
    const small = await startApp({ env: { INFERENCE_BODY_LIMIT_BYTES: '1000' } })
    try {
      const reply = await small.call('POST', '/v1/chat/completions', { model: 'test-model', messages: [{ role: 'user', content: 'x'.repeat(2000) }] })
      expect([reply.status, reply.json.error.code]).toEqual([413, 'payload_too_large'])
    } finally {
      await small.stop()
    }
  })

  test('ERR-01 ERR-05 every error is JSON with three string fields and is never empty', async () => {
    const replies = [
      await chat({ model: '' }),
      await chat({ model: 'nothing' }),
      await chat({}, { token: 'br-nope' }),
      await app.call('GET', '/nowhere'),
      await chat({ provider: 'alpha', model: 'test-model', exclude: ['alpha'] }),
    ]
    for (const reply of replies) {
      expect(reply.status).toBeGreaterThanOrEqual(400)
      expect(reply.headers.get('content-type')).toContain('application/json')
      expect(Number(reply.headers.get('content-length'))).toBeGreaterThan(0)
      const { message, type, code } = reply.json.error
      for (const field of [message, type, code]) expect(typeof field === 'string' && field.length > 0).toBe(true)
    }
  })
})
