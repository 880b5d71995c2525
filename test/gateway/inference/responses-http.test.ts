import { Agent, OpenAIProvider, Runner, setTracingDisabled, tool } from '@openai/agents'
import OpenAI from 'openai'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { statement } from '../../../src/platform/db/db.ts'
import { startApp, type TestApp } from '../../harness/app.ts'
import type { UpstreamScript, UpstreamServer } from '../../harness/upstream-server.ts'

const eventsOf = statement<[orgId: number], { kind: string; streamed: boolean; prompt_tokens: bigint; completion_tokens: bigint; value_uinr: bigint }>(
  'test.responses_events',
  `select kind, streamed, prompt_tokens, completion_tokens, value_uinr from usage_events where org_id = $1::int order by id desc limit 2`,
)

let app: TestApp
let client: OpenAI
beforeAll(async () => {
  setTracingDisabled(true)
  app = await startApp({ dialects: true, env: { SANDBOX: 'on' } })
  client = new OpenAI({ apiKey: app.key, baseURL: `${app.baseUrl}/v1`, maxRetries: 0 })
})
afterAll(() => app.stop())
afterEach(() => {
  for (const server of [app.alpha, app.others.resp, app.others.claude]) server.reset()
})

const ask = (body: object, headers: Record<string, string> = {}) =>
  app.call('POST', '/v1/responses', { model: 'openai-model', input: 'Hello', ...body }, { headers })
const sentToAlpha = () => app.alpha.requests.at(-1)?.json ?? {}
const sentToResp = () => app.others.resp.requests.at(-1)?.json ?? {}

test('a spent budget is 429 with the type insufficient_quota, so that clients of this API do not wait for its end', async () => {
  const agent = await app.newAgent('spent')
  await app.setBudget('agent', agent.id, 0.000001)
  const call = (path: string, body: object) => app.call('POST', path, { model: 'openai-model', ...body }, { token: agent.token })
  await call('/v1/responses', { input: 'Hello' })
  const refused = await call('/v1/responses', { input: 'Hello', stream: true })
  expect([refused.status, refused.json.error.code, refused.json.error.type, refused.headers.get('x-should-retry')]).toEqual([
    429,
    'agent_budget_exceeded',
    'insufficient_quota',
    'false',
  ])
  expect(refused.json.scope).toBe('agent')
  const inChat = await call('/v1/chat/completions', { messages: [{ role: 'user', content: 'Hello' }] })
  expect([inChat.status, inChat.json.error.type]).toEqual([429, 'rate_limit_error'])
})

type Events = readonly OpenAI.Responses.ResponseStreamEvent[]
async function streamed(body: object): Promise<Events> {
  const events: OpenAI.Responses.ResponseStreamEvent[] = []
  for await (const event of await client.responses.create({ model: 'openai-model', input: 'Hello', ...body, stream: true })) events.push(event)
  return events
}

/** Returns a chat reply with tool calls, for the scripted OpenAI server. */
const callsOf = (...calls: readonly { name: string; args: string }[]): UpstreamScript => ({
  body: {
    id: 'c',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: null,
          tool_calls: calls.map(({ name, args }, index) => ({ id: `call_${index}`, type: 'function', function: { name, arguments: args } })),
        },
        finish_reason: 'tool_calls',
      },
    ],
    usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
  },
})

describe('POST /v1/responses', () => {
  test.each(['openai-model', 'anthropic-model', 'gemini-model', 'responses-model'])(
    'RESP-01 %s returns a response, whole and as typed events in order, and both cost the same',
    async model => {
      const whole = await client.responses.create({ model, input: 'Hello' })
      expect(whole).toMatchObject({ object: 'response', status: 'completed', output_text: 'Hello from the test upstream' })
      expect(whole.usage).toMatchObject({ input_tokens: 12, output_tokens: 5, total_tokens: 17 })

      const events = await streamed({ model })
      expect(events.map(event => event.sequence_number)).toEqual(events.map((_, index) => index))
      expect(events[0]?.type).toBe('response.created')
      const deltas = events.filter(event => event.type === 'response.output_text.delta')
      expect(deltas.map(event => event.delta).join('')).toBe('Hello from the test upstream')
      expect(events.at(-1)).toMatchObject({
        type: 'response.completed',
        response: { status: 'completed', usage: { input_tokens: 12, output_tokens: 5, total_tokens: 17 } },
      })

      await app.gateway.app.limits.flushNow()
      const [last, before] = await app.db.many(eventsOf, app.orgId)
      expect([last?.kind, last?.streamed, before?.kind, before?.streamed]).toEqual(['responses', true, 'responses', false])
      expect(last?.value_uinr).toBe(before?.value_uinr)
      expect(last?.value_uinr).toBe(12n * 10n + 5n * 40n)
    },
  )

  test('the response contains the bill next to the usage', async () => {
    const { json } = await ask({})
    expect(json.x_br).toEqual({ cost_inr: 0.00032, value_inr: 0.00032, provider: 'alpha' })
    const completed = (await streamed({})).at(-1)
    expect(completed).toMatchObject({ response: { x_br: json.x_br } })
  })

  const plain = { type: 'function', name: 'weather', description: 'd', parameters: { type: 'object', properties: { city: { type: 'string' } } }, strict: true }
  const space = { type: 'namespace', name: 'mcp__gw', description: 'a server', tools: [{ type: 'function', name: 'whoami', parameters: { type: 'object' } }] }
  const patch = { type: 'custom', name: 'apply_patch', description: 'edits', format: { type: 'grammar', syntax: 'lark', definition: 'start: "x"' } }
  const tools = [plain, space, patch, { type: 'web_search', external_web_access: true }]

  test('RESP-02 functions, namespace tools and freeform tools are translated in both directions, and provider-run tools are refused by name', async () => {
    app.alpha.script(
      callsOf({ name: 'weather', args: '{"city":"Pune"}' }, { name: 'mcp__gw__whoami', args: '' }, { name: 'apply_patch', args: '{"input":"*** Begin"}' }),
    )
    const first = await ask({ tools })
    expect(first.headers.get('x-br-dropped-params')).toBe('tools.web_search')
    const offered = sentToAlpha()['tools'] as { function: Record<string, unknown> }[]
    expect(offered.map(each => each.function['name'])).toEqual(['weather', 'mcp__gw__whoami', 'apply_patch'])
    expect(offered[0]?.function).toEqual({ name: 'weather', description: 'd', parameters: plain.parameters, strict: true })
    expect(offered[2]?.function['description']).toContain('start: "x"')
    const calls = first.json.output
    expect(calls).toMatchObject([
      { type: 'function_call', call_id: 'call_0', name: 'weather', arguments: '{"city":"Pune"}' },
      { type: 'function_call', call_id: 'call_1', namespace: 'mcp__gw', name: 'whoami', arguments: '{}' },
      { type: 'custom_tool_call', call_id: 'call_2', name: 'apply_patch', input: '*** Begin' },
    ])

    const outputs = [
      { type: 'function_call_output', call_id: 'call_0', output: 'sunny' },
      { type: 'function_call_output', call_id: 'call_1', output: [{ type: 'input_text', text: 'me' }] },
      { type: 'custom_tool_call_output', call_id: 'call_2', output: 'done' },
    ]
    expect((await ask({ tools, input: [{ role: 'user', content: 'go' }, ...calls, ...outputs] })).status).toBe(200)
    expect(sentToAlpha()['messages']).toEqual([
      { role: 'user', content: 'go' },
      {
        role: 'assistant',
        content: null,
        tool_calls: [
          { id: 'call_0', type: 'function', function: { name: 'weather', arguments: '{"city":"Pune"}' } },
          { id: 'call_1', type: 'function', function: { name: 'mcp__gw__whoami', arguments: '{}' } },
          { id: 'call_2', type: 'function', function: { name: 'apply_patch', arguments: '{"input":"*** Begin"}' } },
        ],
      },
      { role: 'tool', tool_call_id: 'call_0', content: 'sunny' },
      { role: 'tool', tool_call_id: 'call_1', content: 'me' },
      { role: 'tool', tool_call_id: 'call_2', content: 'done' },
    ])

    const dialed = app.alpha.requests.length
    for (const type of ['file_search', 'code_interpreter', 'image_generation', 'mcp', 'computer_use_preview', 'local_shell', 'web_search_preview', 'made_up']) {
      for (const model of ['openai-model', 'responses-model']) {
        const refused = await ask({ model, tools: [plain, { type }] })
        expect([refused.status, refused.json.error.code]).toEqual([400, 'unsupported_operation'])
        expect(refused.json.error.message).toContain(`"${type}"`)
      }
    }
    for (const demand of [{ tools: [{ type: 'web_search' }] }, { tools, tool_choice: { type: 'web_search' } }])
      expect((await ask(demand)).json.error).toMatchObject({ code: 'unsupported_operation', message: expect.stringContaining('"web_search"') })
    expect(app.alpha.requests).toHaveLength(dialed)
    expect(app.others.resp.requests).toHaveLength(0)
  })

  test('RESP-02 calls in a stream have namespace and name, and their arguments arrive in pieces', async () => {
    const piece = (call: object): string =>
      `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta: { tool_calls: [call] }, finish_reason: null }] })}\n\n`
    app.alpha.script({
      rawStream: [
        piece({ index: 0, id: 'call_0', type: 'function', function: { name: 'mcp__gw__whoami', arguments: '' } }),
        piece({ index: 0, function: { arguments: '{"a":' } }),
        piece({ index: 1, id: 'call_1', type: 'function', function: { name: 'apply_patch', arguments: '{"input":' } }),
        piece({ index: 0, function: { arguments: '1}' } }),
        piece({ index: 1, function: { arguments: '"x"}' } }),
        `data: ${JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }] })}\n\n`,
        'data: [DONE]\n\n',
      ],
    })
    const events = await streamed({ tools })
    const done = events.filter(event => event.type === 'response.output_item.done').map(event => event.item)
    expect(done).toMatchObject([
      { type: 'function_call', namespace: 'mcp__gw', name: 'whoami', call_id: 'call_0', arguments: '{"a":1}' },
      { type: 'custom_tool_call', name: 'apply_patch', call_id: 'call_1', input: 'x' },
    ])
    const deltas = events.filter(event => event.type === 'response.function_call_arguments.delta')
    expect(deltas.map(event => event.delta)).toEqual(['{"a":', '1}'])
    expect(events.filter(event => event.type === 'response.custom_tool_call_input.done').map(event => event.input)).toEqual(['x'])
  })

  test('RESP-03 outputs in parts, developer messages and fields about storage or caching are accepted, and nothing is stored', async () => {
    const pixel = 'data:image/png;base64,iVBORw0KGgo='
    const body = {
      instructions: 'Be short.',
      prompt_cache_key: 'thread-1',
      store: true,
      include: ['reasoning.encrypted_content'],
      input: [
        { type: 'message', role: 'developer', content: [{ type: 'input_text', text: 'You test.' }] },
        { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'go' }] },
        { type: 'function_call', call_id: 'c1', name: 'look', arguments: '{}' },
        {
          type: 'function_call_output',
          call_id: 'c1',
          output: [
            { type: 'input_text', text: 'seen' },
            { type: 'input_image', image_url: pixel },
          ],
        },
      ],
    }
    const reply = await ask(body)
    expect(reply.status).toBe(200)
    expect(reply.json).toMatchObject({ store: false, prompt_cache_key: 'thread-1', previous_response_id: null })
    expect(reply.headers.get('x-br-dropped-params')?.split(',').sort()).toEqual(['prompt_cache_key', 'store'])
    expect(sentToAlpha()['messages']).toEqual([
      { role: 'system', content: 'Be short.\n\nYou test.' },
      { role: 'user', content: 'go' },
      { role: 'assistant', content: null, tool_calls: [{ id: 'c1', type: 'function', function: { name: 'look', arguments: '{}' } }] },
      { role: 'tool', tool_call_id: 'c1', content: 'seen\n(What the tool has shown follows in the next message.)' },
      { role: 'user', content: [{ type: 'image_url', image_url: { url: pixel } }] },
    ])
    expect(sentToAlpha()).not.toHaveProperty('store')

    const relayed = await ask({ ...body, model: 'responses-model' })
    expect(relayed.status).toBe(200)
    expect(sentToResp()).toEqual({ ...body, model: 'responses-upstream', store: false })
    expect(relayed.headers.get('x-br-dropped-params')).toBe('store')

    const earlier = await ask({ previous_response_id: reply.json.id })
    expect([earlier.status, earlier.json.error.code]).toEqual([400, 'unsupported_operation'])
    const dump = await app.dump()
    expect(dump).not.toContain('You test.')
    expect(dump).not.toContain(reply.json.id)
  })

  test("a provider with the Responses API gets the client's bytes unchanged if possible, and never a router field", async () => {
    const text = `{ "input" : "Hello",\n "store":false, "model": "responses-upstream" ,"metadata":{"a":"b"}}`
    await app.call('POST', '/v1/responses', text.replace('responses-upstream', 'responses-model'))
    expect(app.others.resp.requests.at(-1)?.raw.toString()).toBe('{"input" : "Hello",\n "store":false,"model": "responses-upstream","metadata":{"a":"b"}}')
    await ask({ model: 'responses-model', provider: 'resp', exclude: ['alpha'], reasoning: { effort: 'minimal' }, store: false })
    expect(sentToResp()).toEqual({ model: 'responses-upstream', input: 'Hello', reasoning: { effort: 'low' }, store: false })
  })

  test.each([
    [{ input: undefined }, 'bad_request', '"input"'],
    [{ input: [] }, 'bad_request', '"input"'],
    [{ input: [{ type: 'item_reference', id: 'x' }] }, 'unsupported_operation', 'input[0]'],
    [{ input: [{ role: 'user', content: [{ type: 'input_image', file_id: 'f' }] }] }, 'unsupported_operation', 'input[0].content[0].file_id'],
    [{ input: [{ role: 'user', content: 7 }] }, 'bad_request', 'input[0].content'],
    [{ input: [{ role: 'robot', content: 'x' }] }, 'bad_request', 'input[0].role'],
    [{ input: [{ type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' }] }, 'bad_request', 'input[0]'],
    [{ input: [{ type: 'function_call_output', call_id: 'c', output: 'x' }] }, 'bad_request', 'input[0]'],
    [{ background: true }, 'unsupported_operation', '"background"'],
    [{ conversation: 'c' }, 'unsupported_operation', '"conversation"'],
    [{ tools: 7 }, 'bad_request', '"tools"'],
    [{ reasoning: { effort: 'galactic' } }, 'bad_request', '"reasoning.effort"'],
    [{ max_output_tokens: 0 }, 'bad_request', '"max_output_tokens"'],
    [{ text: { format: { type: 'grammar' } } }, 'unsupported_operation', 'text.format'],
  ])('%j is refused with %s and its position, without a provider call or a charge', async (body, code, place) => {
    const refused = await ask(body)
    expect([refused.status, refused.json.error.code]).toEqual([400, code])
    expect(refused.json.error.message).toContain(place)
    expect(app.alpha.requests).toHaveLength(0)
  })

  test('the client gets thinking as a reasoning item, and the next turn returns it to its provider with its signature', async () => {
    const thinking = { type: 'thinking', thinking: 'Let me see.', signature: 'sig-1' }
    const content = [thinking, { type: 'tool_use', id: 'toolu_1', name: 'look', input: {} }]
    app.others.claude.script({
      body: {
        id: 'msg_1',
        type: 'message',
        role: 'assistant',
        model: 'm',
        content,
        stop_reason: 'tool_use',
        stop_sequence: null,
        usage: { input_tokens: 3, output_tokens: 4 },
      },
    })
    const look = { type: 'function', name: 'look', parameters: { type: 'object', properties: {} } }
    const body = { model: 'anthropic-model', tools: [look], reasoning: { effort: 'high', summary: 'auto' } }
    const first = await ask({ ...body, input: 'go' })
    expect(first.json.output).toMatchObject([
      { type: 'reasoning', summary: [{ type: 'summary_text', text: 'Let me see.' }] },
      { type: 'function_call', name: 'look' },
    ])
    const input = [{ role: 'user', content: 'go' }, ...first.json.output, { type: 'function_call_output', call_id: 'toolu_1', output: 'ok' }]
    expect((await ask({ ...body, input })).status).toBe(200)
    const messages = app.others.claude.requests.at(-1)?.json?.['messages'] as { content: unknown }[]
    expect(messages[1]?.content).toEqual(content)
  })

  test.each([
    { model: 'openai-model', upstream: () => app.alpha },
    { model: 'responses-model', upstream: () => app.others.resp },
  ])('a revoke ends the stream of $model with response.failed, the next sequence number and a code that stops retries', async ({ model, upstream }) => {
    const agent = await app.newAgent(`cut ${model}`)
    upstream().script({ holdAfterChunks: 2 })
    const reply = app.call('POST', '/v1/responses', { model, input: 'go', stream: true }, { token: agent.token })
    await upstream().arrived(1)
    await app.call('POST', `/v1/me/agents/${agent.id}/revoke`, {})
    const events = (await reply).text
      .split('\n\n')
      .flatMap(block => /^data: (.*)$/m.exec(block)?.[1] ?? [])
      .map(text => JSON.parse(text))
    expect(events.map(event => event.sequence_number)).toEqual(events.map((_, index) => index))
    expect(events.at(-1)).toMatchObject({
      type: 'response.failed',
      response: { status: 'failed', error: { code: 'invalid_prompt', message: 'agent_revoked: This agent has been revoked.', type: 'authentication_error' } },
    })
    expect(events.at(-1).response.usage.total_tokens).toBeGreaterThan(0)
    expect(events.filter(event => event.type.startsWith('response.completed'))).toEqual([])
  })
})

describe('a provider that fails after its first output', () => {
  const usage = {
    input_tokens: 20,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: 8,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: 28,
  }
  const event = (number: number, type: string, more: object): string =>
    `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: number, ...more })}\n\n`
  const half =
    event(0, 'response.created', { response: { id: 'resp_up', status: 'in_progress' } }) +
    event(1, 'response.output_text.delta', { output_index: 0, delta: 'Half' })
  const failed = event(2, 'response.failed', {
    response: { id: 'resp_up', status: 'failed', usage, error: { code: 'server_error', message: 'The model broke.' } },
  })

  /** Returns the text of a stream whose second part is sent after the first one has arrived. */
  async function inTwo(server: UpstreamServer, parts: readonly string[], path: string, body: object): Promise<string> {
    server.script({ rawStream: parts, holdAfterRawParts: 1 })
    const headers = { authorization: `Bearer ${app.key}`, 'content-type': 'application/json' }
    const response = await fetch(app.baseUrl + path, { method: 'POST', headers, body: JSON.stringify({ ...body, stream: true }) })
    server.release()
    return await response.text()
  }
  const charged = async () => {
    await app.gateway.app.limits.flushNow()
    return (await app.db.many(eventsOf, app.orgId))[0]
  }

  test('case 88: response.failed is relayed unchanged to a client of the Responses API, and its usage is counted', async () => {
    const text = await inTwo(app.others.resp, [half, failed], '/v1/responses', { model: 'responses-model', input: 'go' })
    expect(text).toBe(half + failed)
    expect(await charged()).toMatchObject({ prompt_tokens: 20n, completion_tokens: 8n })
  })

  test('case 88: response.failed becomes an error for a chat client, and its usage is counted', async () => {
    const text = await inTwo(app.others.resp, [half, failed], '/v1/chat/completions', { model: 'responses-model', messages: [{ role: 'user', content: 'go' }] })
    const frames = text.split('\n\n').flatMap(frame => (frame.startsWith('data: {') ? [JSON.parse(frame.slice(6))] : []))
    expect(frames.at(-1)).toMatchObject({
      error: { message: 'The model broke.', code: 'server_error' },
      usage: { prompt_tokens: 20, completion_tokens: 8, total_tokens: 28 },
    })
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true)
    expect(await charged()).toMatchObject({ prompt_tokens: 20n, completion_tokens: 8n })
  })

  test('case 64: an error inside a stream becomes response.failed', async () => {
    const words = 'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"Half"},"finish_reason":null}]}\n\n'
    const error = 'data: {"error":{"message":"Overloaded","type":"overloaded_error","code":"overloaded"}}\n\n'
    const text = await inTwo(app.alpha, [words, error], '/v1/responses', { model: 'openai-model', input: 'go' })
    const events = text
      .split('\n\n')
      .flatMap(block => /^data: (.*)$/m.exec(block)?.[1] ?? [])
      .map(line => JSON.parse(line))
    expect(events.map(each => each.sequence_number)).toEqual(events.map((_, index) => index))
    expect(events.at(-1)).toMatchObject({
      type: 'response.failed',
      response: { error: { code: 'server_error', message: 'overloaded: Overloaded', type: 'overloaded_error' } },
    })
    expect(text).not.toContain('response.completed')
  })
})

describe('the OpenAI Agents SDK', () => {
  const weather = tool({
    name: 'weather',
    description: 'tells the weather',
    parameters: z.object({ city: z.string() }),
    execute: ({ city }) => Promise.resolve(`sunny in ${city}`),
  })
  const runner = () => new Runner({ modelProvider: new OpenAIProvider({ openAIClient: client, useResponses: true }), tracingDisabled: true })
  const prompt = 'call weather {"city":"Pune"}'

  test('RESP-01 a run of the Agents SDK with a tool call ends with its answer, whole and streamed', async () => {
    const agent = new Agent({ name: 'tester', instructions: 'You test.', model: 'sandbox-chat', tools: [weather] })
    const whole = await runner().run(agent, prompt)
    expect(whole.finalOutput).toContain('the tool answered with 3 words')
    const stream = await runner().run(agent, prompt, { stream: true })
    let text = ''
    for await (const part of stream.toTextStream()) text += part
    await stream.completed
    expect(text).toBe(whole.finalOutput)
  })
})
