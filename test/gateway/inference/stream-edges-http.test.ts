/** Streams with unusual beginnings, names or ends, as a client sees them. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../harness/app.ts'
import type { UpstreamServer } from '../../harness/upstream-server.ts'

const hello = [{ role: 'user', content: 'Hello there' }]
const chunk = (delta: object, finish: string | null = null, more: object = {}): string =>
  `data: ${JSON.stringify({ id: 'x', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finish }], ...more })}\n\n`
const end = 'data: [DONE]\n\n'
const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 }
const providerError = 'data: {"error":{"message":"No capacity left","code":429}}\n\n'
const dataOf = (text: string): string[] =>
  text
    .split(/(?:\r?\n){2,}/)
    .filter(event => event.startsWith('data: '))
    .map(event => event.slice(6))
const chunksOf = (text: string) =>
  dataOf(text)
    .filter(data => data !== '[DONE]')
    .map(data => JSON.parse(data))
const deltasOf = (text: string) => chunksOf(text).flatMap(({ choices }) => (choices?.[0]?.delta === undefined ? [] : [choices[0].delta]))
const joined = (text: string, name: string): string =>
  deltasOf(text)
    .map(delta => delta[name] ?? '')
    .join('')

describe('streams at their edges', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({ dialects: true, env: { CIRCUIT_FAILURES: '2' } })
  })
  afterAll(() => app.stop())
  beforeEach(() => {
    for (const upstream of [app.alpha, app.beta, app.indus, app.others.claude, app.others.resp]) upstream.reset()
  })
  const stream = (model: string, body: object = {}) => app.call('POST', '/v1/chat/completions', { model, messages: hello, stream: true, ...body })
  const messages = (model: string) => app.call('POST', '/v1/messages', { model, messages: hello, max_tokens: 50, stream: true })
  const responses = (model: string) => app.call('POST', '/v1/responses', { model, input: 'Hello', stream: true })
  const totals = async () => (await app.call('GET', '/v1/usage')).json.totals
  const isAlphaOpen = () => JSON.stringify(app.gateway.app.circuits.openRoutes()).includes('alpha')

  test('EDGE-01, CHAT-04 streamed thinking under any name of the provider arrives in reasoning_content, and never in content', async () => {
    const spoken = [
      { reasoning: 'six ' },
      { reasoning: 'times "', content: '' },
      { reasoning: ' seven', reasoning_content: ' seven' },
      { reasoning_content: null, reasoning: ' नमस्ते' },
      { reasoning: null, content: '4' },
      { content: '2', reasoning: '' },
    ]
    const parts = [{ content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'a part' }] }] }, { content: [{ type: 'text', text: 'said' }] }]
    for (const model of ['same-id', 'alpha-only']) {
      const whole = [...spoken.map(delta => chunk(delta)), chunk({}, 'stop'), chunk({}, null, { choices: [], usage }), end].join('')
      // For any division by the network.
      for (const rawStream of [[whole], [...whole.matchAll(/[\s\S]{1,7}/g)].map(([piece]) => piece)]) {
        app.alpha.script([{ rawStream }])
        const { text, status } = await stream(model)
        expect([status, joined(text, 'reasoning_content'), joined(text, 'content')]).toEqual([200, 'six times " seven नमस्ते', '42'])
        expect(deltasOf(text).some(({ reasoning }) => typeof reasoning === 'string' && reasoning !== '')).toBe(false)
        expect(text).toContain(JSON.stringify({ reasoning: null, content: '4' }))
      }
      app.alpha.script([{ rawStream: [...parts.map(delta => chunk(delta)), chunk({}, 'stop', { usage }), end] }])
      const { text } = await stream(model)
      expect([joined(text, 'reasoning_content'), deltasOf(text).map(({ content }) => content)]).toEqual([
        'a part',
        [undefined, [{ type: 'text', text: 'said' }], undefined],
      ])
    }
  })

  test('EDGE-02 an error or a close after only comments, pings and empty events causes failover, because the stream has not begun', async () => {
    const openings = [
      ': OPENROUTER PROCESSING\n\n',
      '\n\n',
      ': a\n\n: b\n\n\n',
      'event: x\n\n',
      'data: {"choices":[],"usage":null}\n\n',
      `${': waiting\n\n'.repeat(20_000)}`,
    ]
    for (const opening of openings)
      for (const behind of [providerError, '', 'event: error\ndata: {"message":"No capacity left"}\n\n']) {
        app.alpha.script([{ rawStream: [opening, behind] }])
        const reply = await stream('test-model')
        expect([opening.slice(0, 30), behind, reply.status, reply.headers.get('x-br-provider'), reply.text.includes('No capacity')]).toEqual([
          opening.slice(0, 30),
          behind,
          200,
          'beta',
          false,
        ])
        // A success of the route closes its circuit, so the next case also uses this route first.
        await app.call('POST', '/v1/chat/completions', { model: 'test-model', messages: hello })
      }
    const begin = (upstream: UpstreamServer, rawStream: string[]) => upstream.script([{ rawStream }])
    for (const upstream of [app.alpha, app.beta, app.indus]) begin(upstream, [': OPENROUTER PROCESSING\n\n', providerError])
    const refused = await stream('test-model')
    expect([refused.status, refused.headers.get('content-type'), refused.json.error.code]).toEqual([502, expect.stringContaining('json'), 'all_routes_failed'])
    expect(refused.json.error.message).toContain('No capacity left')
    // Data from before the beginning is not lost when the stream then begins.
    begin(app.alpha, [
      ': waiting\n\n',
      'data: {"id":"x","choices":[],"prompt_filter_results":[]}\n\n',
      chunk({ content: 'hi' }),
      chunk({}, 'stop', { usage }),
      end,
    ])
    const begun = await stream('same-id')
    expect([begun.status, dataOf(begun.text)[0]]).toEqual([200, '{"id":"x","choices":[],"prompt_filter_results":[]}'])
  })

  test('EDGE-02 a translated stream that has not begun also causes failover', async () => {
    const overloaded = 'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"No capacity left"}}\n\n'
    const ping = 'event: ping\ndata: {"type":"ping"}\n\n'
    for (const rawStream of [[': hi\n\n', ping, overloaded], [ping.repeat(5000) + overloaded], [ping]]) {
      app.others.claude.script([{ rawStream }])
      const reply = await messages('anthropic-model')
      expect([reply.status, reply.json.type, reply.json.error.code]).toEqual([502, 'error', 'all_routes_failed'])
      if (rawStream.join('').includes('error')) expect(reply.json.error.message).toContain('No capacity left')
    }
    for (const rawStream of [
      [': hi\n\n', 'event: error\ndata: {"type":"error","message":"No capacity left"}\n\n'],
      ['event: keepalive\ndata: {"type":"keepalive"}\n\n'],
    ]) {
      app.others.resp.script([{ rawStream }])
      const reply = await responses('responses-model')
      expect([reply.status, reply.json.error.code]).toEqual([502, 'all_routes_failed'])
    }
  })

  test('EDGE-03 a stream with a finish reason but without end mark and usage is a success for client, usage rows and routing', async () => {
    for (const model of ['same-id', 'alpha-only'])
      for (const last of [chunk({}, 'stop'), chunk({}, 'stop').trimEnd()])
        for (let times = 0; times < 3; times++) {
          const before = await totals()
          app.alpha.script([{ rawStream: [chunk({ content: 'abcdef' }), last] }])
          const { text, status } = await stream(model)
          const [said, finished, used, done, ...more] = dataOf(text)
          expect([status, JSON.parse(said ?? '').choices[0].delta.content, JSON.parse(finished ?? '').choices[0].finish_reason]).toEqual([
            200,
            'abcdef',
            'stop',
          ])
          expect(JSON.parse(used ?? '')).toMatchObject({ id: 'x', choices: [], usage: { completion_tokens: 2, estimated: true } })
          expect([done, more]).toEqual(['[DONE]', []])
          const after = await totals()
          expect([after.requests - before.requests, after.completion_tokens - before.completion_tokens]).toEqual([1, 2])
        }
    expect(isAlphaOpen()).toBe(false)
    app.alpha.script([{ rawStream: [chunk({ content: 'abcdef' }, 'stop').trimEnd()] }])
    expect(dataOf((await stream('same-id')).text).length, 'all of it in one event without its line end').toBe(3)
    app.alpha.script([{ rawStream: [chunk({ content: 'abcdef' }), chunk({}, 'stop')] }])
    const quiet = await stream('same-id', { stream_options: { include_usage: false } })
    expect(dataOf(quiet.text).slice(2)).toEqual(['[DONE]'])
  })

  test('EDGE-03, CHAT-25 a stream that closes without a finish reason ends with an error frame and an end mark, and is a failure of the route', async () => {
    for (const rawStream of [
      [chunk({ content: 'abc' }), chunk({ content: 'def' })],
      // Usage in every chunk is not an end.
      [chunk({ content: 'abc' }, null, { usage })],
      // An incomplete final chunk is not an end either.
      [chunk({ content: 'abc' }), chunk({}, 'stop').slice(0, -12)],
    ]) {
      app.alpha.script([{ rawStream }])
      const frames = dataOf((await stream('same-id')).text)
      expect(frames.at(-1)).toBe('[DONE]')
      expect(JSON.parse(frames.at(-2) ?? '').error).toMatchObject({ code: 'upstream_stream_error', type: expect.any(String), message: expect.any(String) })
      expect(app.beta.requests).toHaveLength(0)
    }
    expect(isAlphaOpen()).toBe(true)
    await stream('same-id')
    await stream('same-id')
  })

  test('CHAT-25 an error of the provider after the first chunk is relayed, with one end mark and nothing after it', async () => {
    app.alpha.script([{ rawStream: [chunk({ content: 'abc' }), `: more\n\n${providerError}${chunk({ content: 'late' })}${end}`], holdAfterRawParts: 1 }])
    const reply = await fetch(`${app.baseUrl}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${app.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'same-id', messages: hello, stream: true }),
    })
    const reader = reply.body?.getReader()
    let text = ''
    for (let read = await reader?.read(); read?.value !== undefined; read = await reader?.read()) {
      text += Buffer.from(read.value).toString()
      app.alpha.release()
    }
    expect(dataOf(text).slice(1)).toEqual([providerError.slice(6, -2), '[DONE]'])
  })

  test('EDGE-04 data after the end mark does not reach the client, in the same network chunk or a later one', async () => {
    const late = chunk({ content: 'LATE' })
    const good = chunk({ content: 'abc' }) + chunk({}, 'stop') + chunk({}, null, { choices: [], usage })
    for (const model of ['same-id', 'alpha-only'])
      for (const rawStream of [
        [good + end + end + late],
        [good + end, end, late],
        [good, `data: [DONE]\r\n\r\n: LATE\n\n${late}`],
        [`${good}data: [DONE]\nid: LATE\ndata: LATE\n\n${late}`],
        [`${good}data: [DO`, `NE]\n\n${late}data: LATE`],
      ]) {
        app.alpha.script([{ rawStream }])
        const { text } = await stream(model)
        expect([text.includes('LATE'), dataOf(text).filter(data => data === '[DONE]').length, dataOf(text).at(-1)]).toEqual([false, 1, '[DONE]'])
      }
    const relays: readonly [UpstreamServer, () => ReturnType<typeof stream>, string][] = [
      [app.others.claude, () => messages('anthropic-model'), 'message_stop'],
      [app.others.resp, () => responses('responses-model'), 'response.completed'],
    ]
    for (const [upstream, call, last] of relays) {
      const plain = await call()
      expect(plain.text).toContain(last)
      for (const behind of [': LATE\n\n', 'event: LATE\ndata: {"type":"LATE"}\n\n', 'data: LATE']) {
        upstream.script([{ rawStream: [plain.text + behind, behind] }])
        const { text } = await call()
        expect([text.includes('LATE'), text.includes(last)]).toEqual([false, true])
        upstream.script([{ rawStream: [plain.text.slice(0, -1), `\n${behind}`] }])
        expect((await call()).text.includes('LATE')).toBe(false)
      }
    }
  })
})
