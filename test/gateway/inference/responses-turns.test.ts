import OpenAI from 'openai'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { defaultOperatorFile, startApp, type TestApp } from '../../harness/app.ts'

let app: TestApp
let client: OpenAI
beforeAll(async () => {
  app = await startApp({ dialects: true, env: { SANDBOX: 'on' }, operatorFile })
  client = new OpenAI({ apiKey: app.key, baseURL: `${app.baseUrl}/v1`, maxRetries: 0 })
})
afterAll(() => app.stop())
afterEach(() => {
  for (const server of [app.alpha, app.others.resp, app.others.claude, app.others.gem]) server.reset()
})

/** One model with two providers: the first has the Responses API, the second has chat completions. */
function operatorFile(urls: { alpha: string; beta: string; indus: string }): object {
  const { providers, models } = defaultOperatorFile(urls)
  const price = { input_inr_per_mtok: 10, output_inr_per_mtok: 40 }
  const routes = [
    { provider: 'resp', upstream_model: 'first-upstream', ...price },
    { provider: 'alpha', upstream_model: 'second-upstream', ...price },
  ]
  return { providers, models: [...models, { id: 'moved-model', kind: 'chat', context_length: 131_072, tools: true, modalities: ['text', 'image'], routes }] }
}

const ask = (body: object) => app.call('POST', '/v1/responses', { model: 'openai-model', input: 'Hello', ...body })
const tools = [{ type: 'function', name: 'look', parameters: { type: 'object', properties: {} } }]
const call = (id: string) => ({ type: 'function_call', call_id: id, name: 'look', arguments: '{}' })
const output = (id: string) => ({ type: 'function_call_output', call_id: id, output: `seen ${id}` })
const said = (text: string) => ({ type: 'message', role: 'assistant', content: [{ type: 'output_text', text }] })
const hubCall = (id: string) => ({ id, type: 'function', function: { name: 'look', arguments: '{}' } })

describe('the turns of an agent', () => {
  test('sequential calls keep their order, and the beginning of the conversation stays the same in later turns', async () => {
    const first = [{ role: 'user', content: 'go' }, said('I look.'), call('c1'), output('c1')]
    const later = [
      ...first,
      said('And'),
      said('again.'),
      call('c2'),
      call('c3'),
      output('c3'),
      output('c2'),
      said('Done.'),
      { role: 'user', content: 'thanks' },
    ]
    await ask({ tools, input: first })
    const before = app.alpha.requests.at(-1)?.json?.['messages'] as object[]
    await ask({ tools, input: later })
    const messages = app.alpha.requests.at(-1)?.json?.['messages'] as object[]
    expect(messages).toEqual([
      { role: 'user', content: 'go' },
      { role: 'assistant', content: 'I look.', tool_calls: [hubCall('c1')] },
      { role: 'tool', tool_call_id: 'c1', content: 'seen c1' },
      { role: 'assistant', content: 'And\n\nagain.', tool_calls: [hubCall('c2'), hubCall('c3')] },
      { role: 'tool', tool_call_id: 'c2', content: 'seen c2' },
      { role: 'tool', tool_call_id: 'c3', content: 'seen c3' },
      { role: 'assistant', content: 'Done.' },
      { role: 'user', content: 'thanks' },
    ])
    expect(messages.slice(0, before.length)).toEqual(before)
  })

  test('steps whose calls have equal ids keep their own outputs, and a step without an output is refused', async () => {
    const seen = (text: string) => ({ type: 'function_call_output', call_id: 'call_0', output: text })
    const input = [{ role: 'user', content: 'go' }, call('call_0'), seen('first'), call('call_0'), seen('second')]
    await ask({ tools, input })
    const messages = app.alpha.requests.at(-1)?.json?.['messages'] as { role: string; content: string }[]
    expect(messages.filter(({ role }) => role === 'tool').map(({ content }) => content)).toEqual(['first', 'second'])
    const refused = await ask({ tools, input: [...input, call('call_0')] })
    expect([refused.status, refused.json.error.message]).toEqual([400, expect.stringContaining('input[5]')])
  })

  test('every step of a thinking model keeps its own thinking with its signature', async () => {
    const thinking = (step: number) => ({ type: 'thinking', thinking: `Step ${step}.`, signature: `sig-${step}` })
    const step = (number: number) => ({
      body: {
        id: `msg_${number}`,
        type: 'message',
        role: 'assistant',
        model: 'm',
        content: [thinking(number), { type: 'tool_use', id: `toolu_${number}`, name: 'look', input: {} }],
        stop_reason: 'tool_use',
        stop_sequence: null,
        usage: { input_tokens: 3, output_tokens: 4 },
      },
    })
    const body = { model: 'anthropic-model', tools, reasoning: { effort: 'high' } }
    const input: object[] = [{ role: 'user', content: 'go' }]
    for (const number of [1, 2]) {
      app.others.claude.script(step(number))
      const { json } = await ask({ ...body, input })
      input.push(...json.output, output(`toolu_${number}`))
    }
    await ask({ ...body, input })
    const messages = app.others.claude.requests.at(-1)?.json?.['messages'] as { role: string; content: { type: string }[] }[]
    expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant', 'user'])
    expect(messages[1]?.content).toEqual([thinking(1), { type: 'tool_use', id: 'toolu_1', name: 'look', input: {} }])
    expect(messages[3]?.content).toEqual([thinking(2), { type: 'tool_use', id: 'toolu_2', name: 'look', input: {} }])
  })
})

describe('a conversation that moves between providers', () => {
  test('when a provider with the Responses API fails, a provider with chat completions serves, whole and streamed', async () => {
    for (const stream of [false, true]) {
      app.others.resp.script({ status: 503, body: { error: { message: 'down' } } })
      const asked = { model: 'moved-model', input: 'Hello', instructions: 'Be short.', store: true, max_output_tokens: 99, stream }
      const reply = await app.call('POST', '/v1/responses', asked)
      expect([reply.status, reply.headers.get('x-br-provider')]).toEqual([200, 'alpha'])
      expect(reply.headers.get('x-br-dropped-params')).toBe('store')
      expect(app.alpha.requests.at(-1)?.json).toMatchObject({
        model: 'second-upstream',
        messages: [
          { role: 'system', content: 'Be short.' },
          { role: 'user', content: 'Hello' },
        ],
        max_tokens: 99,
      })
      expect(reply.text).toContain('Hello from the test upstream')
    }
    expect(app.others.resp.requests).toHaveLength(2)
  })

  test('thinking that the gateway packed is not sent to a provider with the Responses API, which would refuse it', async () => {
    app.alpha.script({
      body: {
        id: 'c',
        object: 'chat.completion',
        created: 1,
        model: 'm',
        choices: [{ index: 0, message: { role: 'assistant', content: 'Hi', reasoning_content: 'Let me see.' }, finish_reason: 'stop' }],
        usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
      },
    })
    const { json } = await ask({ reasoning: { effort: 'low' } })
    expect(json.output.map(({ type }: { type: string }) => type)).toEqual(['reasoning', 'message'])
    const own = { type: 'reasoning', id: 'rs_up', summary: [], encrypted_content: 'gAAAA-of-the-provider' }
    const input = [{ role: 'user', content: 'go' }, ...json.output, { role: 'user', content: 'on' }, own, said('ok'), { role: 'user', content: 'and?' }]
    const moved = await ask({ model: 'responses-model', input })
    expect(moved.status).toBe(200)
    expect(moved.headers.get('x-br-dropped-params')).toBe('input.reasoning.encrypted_content')
    expect(app.others.resp.requests.at(-1)?.json?.['input']).toEqual(input.filter(item => item !== json.output[0]))
  })
})

describe('the bill of a relayed stream', () => {
  const event = (number: number, type: string, more: object): string =>
    `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: number, ...more })}\n\n`
  const usage = {
    input_tokens: 20,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: 8,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: 28,
  }
  const start =
    event(0, 'response.created', { response: { id: 'resp_up', status: 'in_progress' } }) +
    event(1, 'response.output_text.delta', { output_index: 0, delta: 'data: {"type":"response.completed","response":{}}\ndata: é' })
  const bill = { cost_inr: 0.00052, value_inr: 0.00052, provider: 'resp' }
  const streamOf = async (text: string, cut: number): Promise<string> => {
    const bytes = Buffer.from(text)
    const rawStream = cut === 0 ? [bytes] : Array.from({ length: Math.ceil(bytes.length / cut) }, (_, index) => bytes.subarray(index * cut, (index + 1) * cut))
    app.others.resp.script({ rawStream })
    return (await ask({ model: 'responses-model', stream: true })).text
  }

  test.each(['completed', 'incomplete'])(
    'the bill is in response.%s next to the usage, and nothing else changes, for any division of the bytes',
    async status => {
      const response = { id: 'resp_up', status, output: [], usage }
      const last = (more: object): string => event(2, `response.${status}`, { response: { ...response, ...more } })
      for (const cut of [0, 7]) {
        expect(await streamOf(start + last({}), cut)).toBe(start + last({ x_br: bill }))
        expect(await streamOf(start + last({}).trimEnd(), cut)).toBe(start + last({ x_br: bill }))
      }
      const told = await streamOf(start + last({ usage: null }), 0)
      const end = JSON.parse(told.slice(told.lastIndexOf('data: ') + 'data: '.length))
      expect(end.response.usage.total_tokens).toBeGreaterThan(0)
      expect(end.response.x_br.cost_inr).toBeCloseTo((end.response.usage.input_tokens * 10 + end.response.usage.output_tokens * 40) / 1e6, 6)
    },
  )
})

describe('items that would have to be stored', () => {
  test.each(['openai-model', 'responses-model'])('files and items that are given by id are refused for %s before a provider is called', async model => {
    for (const content of [[{ type: 'input_file', file_id: 'file-1' }], [{ type: 'input_image', file_id: 'file-1' }]]) {
      for (const input of [
        [{ role: 'user', content }],
        [{ role: 'user', content: 'go' }, call('c1'), { type: 'function_call_output', call_id: 'c1', output: content }],
      ]) {
        const refused = await ask({ model, input, tools })
        expect([refused.status, refused.json.error.code]).toEqual([400, 'unsupported_operation'])
        expect(refused.json.error.message).toContain('file_id')
      }
    }
    expect([...app.alpha.requests, ...app.others.resp.requests]).toEqual([])
  })

  test.each([
    ['GET', '/v1/responses/resp_1'],
    ['DELETE', '/v1/responses/resp_1'],
    ['POST', '/v1/responses/resp_1/cancel'],
    ['GET', '/v1/responses/resp_1/input_items'],
  ])('%s %s answers that the gateway stores no responses', async (method, path) => {
    const refused = await app.call(method, path, method === 'POST' ? {} : undefined)
    expect([refused.status, refused.json.error.code]).toEqual([404, 'not_found'])
    expect(refused.json.error.message).toContain('not stored')
  })
})

describe('the stream helper of the OpenAI SDK', () => {
  test.each(['openai-model', 'anthropic-model', 'gemini-model', 'responses-model'])(
    'the helper builds the final response from the events of %s',
    async model => {
      const helper = client.responses.stream({ model, input: 'Hello' })
      let text = ''
      helper.on('response.output_text.delta', event => {
        text += event.delta
      })
      const final = await helper.finalResponse()
      expect([text, final.output_text, final.status]).toEqual(['Hello from the test upstream', text, 'completed'])
    },
  )
})
