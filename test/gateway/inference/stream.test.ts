import OpenAI from 'openai'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startApp, type TestApp, until } from '../../harness/app.ts'
import { modelOfDialect } from '../../harness/dialect-upstreams.ts'
import type { UpstreamScript, UpstreamServer } from '../../harness/upstream-server.ts'

const sentBodies = (upstream: UpstreamServer) => upstream.requests.map(request => request.json)
const hello = [{ role: 'user', content: 'Hello there' }]
const events = (text: string): string[] =>
  text
    .split(/\n{2,}/)
    .filter(event => event.startsWith('data: '))
    .map(event => event.slice(6))
const chunks = (text: string) =>
  events(text)
    .filter(event => event !== '[DONE]')
    .map(event => JSON.parse(event))

describe('streamed chat completions', () => {
  let app: TestApp
  beforeAll(async () => {
    // The limit is high, because providers often break off in these tests. The routing tests cover circuits.
    app = await startApp({ env: { CIRCUIT_FAILURES: '1000' }, dialects: true })
  })
  afterAll(() => app.stop())
  beforeEach(() => {
    for (const upstream of [app.alpha, app.beta, app.indus]) upstream.reset()
  })
  const stream = (body: object = {}, options = {}) =>
    app.call('POST', '/v1/chat/completions', { model: 'test-model', messages: hello, stream: true, ...body }, options)
  const totals = async () => (await app.call('GET', '/v1/usage')).json.totals

  test('CHAT-17 CHAT-18 a stream is an event-stream without caching, has chunks with one id, and ends with [DONE]', async () => {
    const reply = await stream()
    expect(reply.status).toBe(200)
    expect(reply.headers.get('content-type')).toContain('text/event-stream')
    expect(reply.headers.get('cache-control')).toContain('no-cache')
    expect(reply.text.trimEnd().endsWith('data: [DONE]')).toBe(true)
    const list = chunks(reply.text)
    expect(new Set(list.map(chunk => chunk.id)).size).toBe(1)
    for (const chunk of list) expect(chunk.object).toBe('chat.completion.chunk')
  })

  test('CHAT-18 every chunk has the object chat.completion.chunk and the same id, relayed or translated, with reported or estimated usage', async () => {
    const cases: [string, UpstreamScript, object][] = [
      ['usage of the provider', {}, {}],
      ['usage that nobody told', { usage: null }, {}],
      ['usage that the caller did not ask for', {}, { stream_options: { include_usage: true } }],
      ['a model that the provider calls by another name', {}, { model: 'alpha-only' }],
      ...Object.values(modelOfDialect).map((model): [string, UpstreamScript, object] => [`translated for ${model}`, {}, { model }]),
    ]
    for (const [name, script, body] of cases) {
      app.alpha.reset()
      app.alpha.script([script])
      const reply = await stream(body)
      expect(reply.status, name).toBe(200)
      const list = chunks(reply.text)
      expect(list.length, name).toBeGreaterThan(3)
      expect(
        list.map(chunk => chunk.object),
        name,
      ).toEqual(list.map(() => 'chat.completion.chunk'))
      expect(list[0].id, name).toMatch(/./)
      expect(
        list.map(chunk => chunk.id),
        name,
      ).toEqual(list.map(() => list[0].id))
      expect(list.at(-1).usage.total_tokens, name).toBeGreaterThan(0)
    }
  })

  test('CHAT-19 CHAT-20 the gateway requests usage and keeps other stream options, and the last chunk before [DONE] has the usage', async () => {
    const reply = await stream({ stream_options: { chunk_size: 3 } })
    expect(sentBodies(app.alpha)[0]?.['stream_options']).toEqual({ chunk_size: 3, include_usage: true })
    expect(chunks(reply.text).at(-1).usage.total_tokens).toBeGreaterThan(0)
    app.alpha.reset()
    await stream()
    expect(sentBodies(app.alpha)[0]?.['stream_options']).toEqual({ include_usage: true })
  })

  test('CHAT-21 with include_usage: false the gateway still requests and records usage, but does not send the usage chunk', async () => {
    const before = await totals()
    const reply = await stream({ stream_options: { include_usage: false } })
    expect(sentBodies(app.alpha)[0]?.['stream_options']).toEqual({ include_usage: true })
    expect(chunks(reply.text).some(chunk => chunk.usage)).toBe(false)
    expect(reply.text.trimEnd().endsWith('data: [DONE]')).toBe(true)
    expect((await totals()).total_tokens).toBeGreaterThan(before.total_tokens)
  })

  test('CHAT-22 a provider without the usage option is not asked for usage, which is estimated', async () => {
    app.beta.script([{ usage: null }])
    const before = await totals()
    expect((await stream({ model: 'mute-model' })).status).toBe(200)
    expect(sentBodies(app.beta)[0]?.['stream_options']).toBeUndefined()
    expect((await totals()).completion_tokens).toBeGreaterThan(before.completion_tokens)
  })

  test('CHAT-23 a call costs the same, streamed or not', async () => {
    const cost = async (call: () => Promise<unknown>): Promise<number[]> => {
      const before = await totals()
      await Promise.resolve(call())
      const after = await totals()
      return [
        after.prompt_tokens - before.prompt_tokens,
        after.completion_tokens - before.completion_tokens,
        Number((after.cost_uinr - before.cost_uinr).toFixed(0)),
      ]
    }
    const whole = await cost(() => app.call('POST', '/v1/chat/completions', { model: 'test-model', messages: hello }))
    expect(await cost(() => stream())).toEqual(whole)
    expect(whole[2]).toBeGreaterThan(0)
  })

  test('HDR-02 the headers of a stream name the serving provider before the first byte', async () => {
    app.alpha.script([{ status: 503 }])
    expect((await stream()).headers.get('x-br-provider')).toBe('beta')
  })

  test('CHAT-24 when a provider fails before the first chunk, the next route serves, and when all fail the answer is a JSON 502', async () => {
    app.alpha.script([{ breakAfterChunks: 0 }])
    expect((await stream()).headers.get('x-br-provider')).toBe('beta')
    for (const upstream of [app.alpha, app.beta, app.indus]) upstream.script([{ breakAfterChunks: 0 }])
    const reply = await stream()
    expect([reply.status, reply.json.error.code]).toEqual([502, 'all_routes_failed'])
  })

  test('CHAT-25 when a provider breaks off after the first chunk, the stream ends with an error frame and [DONE], without failover', async () => {
    app.alpha.script([{ breakAfterChunks: 2 }])
    const reply = await stream()
    expect(reply.status).toBe(200)
    const frames = events(reply.text)
    expect(frames.at(-1)).toBe('[DONE]')
    expect(JSON.parse(frames.at(-2) ?? '').error).toMatchObject({ code: 'upstream_stream_error', type: expect.any(String), message: expect.any(String) })
    expect(app.beta.requests).toHaveLength(0)
  })

  test('a stream that closes without its end mark is a failure, unless its usage has arrived', async () => {
    const chunk = (more: object) =>
      `data: ${JSON.stringify({ id: 'x', object: 'chat.completion.chunk', model: 'm', choices: [{ index: 0, delta: { content: 'hi' }, finish_reason: null }], ...more })}\n\n`
    app.alpha.script({ rawStream: [chunk({}), chunk({})] })
    const cut = events((await stream()).text)
    expect(JSON.parse(cut.at(-2) ?? '').error.code).toBe('upstream_stream_error')
    expect(cut.at(-1)).toBe('[DONE]')
    app.alpha.script({ rawStream: [chunk({}), chunk({ choices: [], usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 } })] })
    const whole = events((await stream()).text)
    expect(whole.at(-1)).toBe('[DONE]')
    expect(whole.some(event => event.includes('error'))).toBe(false)
  })

  test('CHAT-26 when a client disconnects, the connection to the provider ends, and the output so far is charged', async () => {
    const before = await totals()
    app.alpha.script([{ holdAfterChunks: 3 }])
    const controller = new AbortController()
    const response = await fetch(`${app.baseUrl}/v1/chat/completions`, {
      method: 'POST',
      signal: controller.signal,
      headers: { authorization: `Bearer ${app.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'test-model', messages: hello, stream: true }),
    })
    const reader = response.body?.getReader()
    await reader?.read()
    controller.abort()
    await until(() => app.alpha.requests[0]?.aborted === true)
    await until(async () => (await totals()).requests === before.requests + 1)
    expect((await totals()).completion_tokens).toBeGreaterThan(before.completion_tokens)
  })

  test('an end mark without a line end also ends the stream, and nothing is sent twice', async () => {
    const chunk = 'data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"abc"},"finish_reason":"stop"}]}\n\n'
    for (const end of ['data: [DONE]', 'data: [DONE]\n']) {
      app.alpha.script([{ rawStream: [chunk, end] }])
      const reply = await stream()
      const [said, usage, ...rest] = events(reply.text)
      expect([said, rest], JSON.stringify(end)).toEqual([chunk.slice(6, -2), ['[DONE]']])
      expect(JSON.parse(usage ?? '')).toMatchObject({ id: 'c', choices: [], usage: { completion_tokens: 1, estimated: true } })
      expect(reply.text.endsWith('\n\n')).toBe(true)
    }
  })

  test("the provider's own error frame is relayed, followed by the end mark as a separate event", async () => {
    const frame = 'data: {"error":{"message":"overloaded","type":"server_error","code":null}}'
    for (const end of ['\n', '\n\n']) {
      app.alpha.script([{ rawStream: ['data: {"choices":[{"index":0,"delta":{"content":"abc"}}]}\n\n', `${frame}${end}`], holdAfterRaw: true }])
      expect(events((await stream()).text).slice(1), JSON.stringify(end)).toEqual([frame.slice(6), '[DONE]'])
      await until(() => app.alpha.requests.at(-1)?.aborted === true)
    }
  })

  test('the OpenAI SDK reads a stream and its usage', async () => {
    const client = new OpenAI({ baseURL: `${app.baseUrl}/v1`, apiKey: app.key, maxRetries: 0 })
    let text = ''
    let total = 0
    for await (const chunk of await client.chat.completions.create({
      model: 'test-model',
      messages: [{ role: 'user', content: 'hi' }],
      stream: true,
      stream_options: { include_usage: true },
    })) {
      text += chunk.choices[0]?.delta.content ?? ''
      total = chunk.usage?.total_tokens ?? total
    }
    expect(text.length).toBeGreaterThan(0)
    expect(total).toBeGreaterThan(0)
  })
})
