import Anthropic from '@anthropic-ai/sdk'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../harness/app.ts'

let app: TestApp
let client: Anthropic

beforeAll(async () => {
  app = await startApp({ dialects: true })
  client = new Anthropic({ baseURL: app.baseUrl, apiKey: app.key, maxRetries: 0 })
})
afterAll(() => app.stop())
beforeEach(() => {
  app.alpha.reset()
  app.others.claude.reset()
})

const ask = { model: 'test-model', max_tokens: 100, messages: [{ role: 'user' as const, content: 'Hi' }] }
const tools = [
  { name: 'get_weather', description: 'Weather', input_schema: { type: 'object' as const, properties: { place: { type: 'string' } } } },
  { name: 'a.tool/with odd characters', input_schema: { type: 'object' as const } },
]
const frame = (delta: object, finish: string | null = null): string =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`
const usage = (prompt: number, completion: number, cached = 0): string =>
  `data: ${JSON.stringify({ choices: [], usage: { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion, prompt_tokens_details: { cached_tokens: cached } } })}\n\ndata: [DONE]\n\n`
const call = (index: number, id: string | undefined, name: string | undefined, args: string): object => ({
  tool_calls: [{ index, ...(id ? { id, type: 'function' } : {}), function: { ...(name ? { name } : {}), arguments: args } }],
})

test('MSG-02 a catalog model of another provider answers in the messages format', async () => {
  app.alpha.script({ usage: { prompt_tokens: 30, completion_tokens: 5, total_tokens: 35, prompt_tokens_details: { cached_tokens: 10 } } })
  const message = await client.messages.create(ask)
  expect(message).toMatchObject({
    type: 'message',
    role: 'assistant',
    model: 'test-model',
    content: [{ type: 'text', text: 'Hello from the test upstream' }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: { input_tokens: 20, cache_read_input_tokens: 10, cache_creation_input_tokens: 0, output_tokens: 5 },
  })
  expect(message.id).toMatch(/^msg_/)
  expect(app.alpha.requests[0]?.path).toBe('/v1/chat/completions')
})

test('MSG-03 a translated call is charged like any other', async () => {
  const { response } = await client.messages.create(ask).withResponse()
  expect(Number(response.headers.get('x-br-cost-inr'))).toBeGreaterThan(0)
  const report = await app.call('GET', '/v1/usage')
  expect(JSON.stringify(report.json)).toContain('test-model')
})

test('MSG-15 a translated stream has every event of the messages format in the right order', async () => {
  app.alpha.script({
    rawStream: [frame({ role: 'assistant', content: '' }), frame({ content: 'Hel' }), frame({ content: 'lo' }), frame({}, 'stop'), usage(50, 9, 20)],
  })
  const events: string[] = []
  const stream = client.messages.stream(ask)
  stream.on('streamEvent', event => events.push(event.type))
  const message = await stream.finalMessage()
  expect(events).toEqual([
    'message_start',
    'content_block_start',
    'content_block_delta',
    'content_block_delta',
    'content_block_stop',
    'message_delta',
    'message_stop',
  ])
  expect(message).toMatchObject({
    content: [{ type: 'text', text: 'Hello' }],
    stop_reason: 'end_turn',
    usage: { input_tokens: 30, cache_read_input_tokens: 20, output_tokens: 9 },
  })
})

test('MSG-16 tools are translated in both directions: calls, parallel calls, results, and streamed arguments', async () => {
  app.alpha.script({
    body: {
      id: 'c',
      object: 'chat.completion',
      choices: [
        {
          index: 0,
          message: {
            role: 'assistant',
            content: null,
            tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'get_weather', arguments: '{"place":"Pune"}' } }],
          },
          finish_reason: 'tool_calls',
        },
      ],
      usage: { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 },
    },
  })
  const first = await client.messages.create({ ...ask, tools })
  expect(first).toMatchObject({ stop_reason: 'tool_use', content: [{ type: 'tool_use', id: 'call_1', name: 'get_weather', input: { place: 'Pune' } }] })
  const odd = /"name":"(a_tool[^"]*)"/.exec(app.alpha.requests[0]?.raw.toString() ?? '')?.[1] ?? ''
  expect(odd).toMatch(/^[a-zA-Z0-9_-]{1,64}$/)

  app.alpha.script({
    rawStream: [
      frame({ role: 'assistant', content: 'Both.' }),
      frame(call(0, 'call_2', 'get_weather', '')),
      frame(call(1, 'call_3', odd, '{"x"')),
      frame(call(0, undefined, undefined, '{"place":')),
      frame(call(1, undefined, undefined, ':1}')),
      frame(call(0, undefined, undefined, '"Goa"}')),
      frame({}, 'tool_calls'),
      usage(9, 3),
    ],
  })
  const partial: string[] = []
  const stream = client.messages.stream({
    ...ask,
    tools,
    messages: [
      ...ask.messages,
      { role: 'assistant', content: first.content },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'call_1', content: '31 C' }] },
    ],
  })
  stream.on('inputJson', json => partial.push(json))
  const second = await stream.finalMessage()
  expect(app.alpha.requests[1]?.json?.['messages']).toMatchObject([
    { role: 'user' },
    { role: 'assistant', tool_calls: [{ id: 'call_1' }] },
    { role: 'tool', tool_call_id: 'call_1', content: '31 C' },
  ])
  expect(second.content).toMatchObject([
    { type: 'text', text: 'Both.' },
    { type: 'tool_use', id: 'call_2', name: 'get_weather', input: { place: 'Goa' } },
    { type: 'tool_use', id: 'call_3', name: 'a.tool/with odd characters', input: { x: 1 } },
  ])
  expect(partial.join('')).toBe('{"place":"Goa"}{"x":1}')
})

test('MSG-17 thinking becomes a block before the text, streamed or not', async () => {
  const message = { role: 'assistant', content: '4', reasoning_content: 'two and two' }
  app.alpha.script({
    body: {
      id: 'c',
      object: 'chat.completion',
      choices: [{ index: 0, message, finish_reason: 'stop' }],
      usage: { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 },
    },
  })
  expect((await client.messages.create(ask)).content).toMatchObject([
    { type: 'thinking', thinking: 'two and two' },
    { type: 'text', text: '4' },
  ])
  app.alpha.script({ rawStream: [frame({ reasoning: 'two ' }), frame({ reasoning: 'and two' }), frame({ content: '4' }), frame({}, 'stop'), usage(9, 3)] })
  expect((await client.messages.stream(ask).finalMessage()).content).toMatchObject([
    { type: 'thinking', thinking: 'two and two' },
    { type: 'text', text: '4' },
  ])
})

test('MSG-18 system, stop strings, tool choice, images and tool results are translated', async () => {
  app.alpha.script({
    body: {
      id: 'c',
      object: 'chat.completion',
      choices: [{ index: 0, message: { role: 'assistant', content: 'a' }, finish_reason: 'stop', stop_reason: 'END' }],
      usage: { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 },
    },
  })
  const answer = await client.messages.create({
    ...ask,
    system: [{ type: 'text', text: 'Be terse.' }],
    stop_sequences: ['END'],
    tools,
    tool_choice: { type: 'tool', name: 'get_weather', disable_parallel_tool_use: true },
    messages: [
      {
        role: 'user',
        content: [
          { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' } },
          { type: 'text', text: 'where?' },
        ],
      },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'get_weather', input: { place: 'Pune' } }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', is_error: true, content: [{ type: 'text', text: 'no' }] }] },
    ],
  })
  expect(answer).toMatchObject({ stop_reason: 'stop_sequence', stop_sequence: 'END' })
  expect(app.alpha.requests[0]?.json).toMatchObject({
    stop: ['END'],
    parallel_tool_calls: false,
    tool_choice: { type: 'function', function: { name: 'get_weather' } },
    messages: [
      { role: 'system', content: 'Be terse.' },
      {
        role: 'user',
        content: [
          { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } },
          { type: 'text', text: 'where?' },
        ],
      },
      { role: 'assistant', content: null, tool_calls: [{ id: 'toolu_1', type: 'function', function: { name: 'get_weather', arguments: '{"place":"Pune"}' } }] },
      { role: 'tool', tool_call_id: 'toolu_1', content: 'Error: no' },
    ],
  })
})

test('the SDK throws its own error classes, also for a stream', async () => {
  await expect(client.messages.create({ ...ask, model: 'nope' })).rejects.toBeInstanceOf(Anthropic.NotFoundError)
  await expect(new Anthropic({ baseURL: app.baseUrl, apiKey: 'br-nobody', maxRetries: 0 }).messages.create(ask)).rejects.toBeInstanceOf(
    Anthropic.AuthenticationError,
  )
  await expect(client.messages.create({ ...ask, tools: [{ type: 'web_search_20250305', name: 'web_search' }] })).rejects.toThrow(/web_search_20250305/)
  app.alpha.script({ holdAfterChunks: 2, errorFrameAfterChunks: 2 })
  const broken = client.messages.stream(ask)
  broken.once('text', () => app.alpha.release())
  await expect(broken.finalMessage()).rejects.toBeInstanceOf(Anthropic.APIError)
})

test("a claude model works through the SDK with the gateway key in x-br-api-key and the provider key in the SDK's header", async () => {
  const native = new Anthropic({ baseURL: app.baseUrl, apiKey: 'sk-ant-api03-own', defaultHeaders: { 'x-br-api-key': app.key }, maxRetries: 0 })
  const message = await native.beta.messages.create({ ...ask, model: 'claude-test', betas: ['files-api-2025-04-14'] })
  expect(message.content).toMatchObject([{ type: 'text' }])
  expect(app.others.claude.requests[0]?.headers).toMatchObject({ authorization: 'Bearer sk-ant-api03-own', 'anthropic-beta': 'files-api-2025-04-14' })
  expect((await native.messages.stream({ ...ask, model: 'claude-test' }).finalMessage()).usage.output_tokens).toBe(5)
  expect(await native.messages.countTokens({ model: 'claude-test', messages: ask.messages })).toEqual({ input_tokens: 12 })
})
