import OpenAI from 'openai'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { systemClock } from '../../src/platform/clock.ts'
import { systemIds } from '../../src/platform/values/ids.ts'
import { startSandbox } from '../../src/sandbox/sandbox.ts'

let sandbox: Awaited<ReturnType<typeof startSandbox>>
let client: OpenAI
beforeAll(async () => {
  sandbox = await startSandbox({ clock: systemClock, ids: systemIds, host: '127.0.0.1' })
  client = new OpenAI({ baseURL: sandbox.url, apiKey: 'any', maxRetries: 0 })
})
afterAll(() => sandbox.close())

const create = (input: OpenAI.Responses.ResponseInput | string, more: object = {}): Promise<OpenAI.Responses.Response> =>
  client.responses.create({ model: 'sandbox-chat', input, ...more })

async function streamed(input: string, more: object = {}): Promise<OpenAI.Responses.Response> {
  return await client.responses.stream({ model: 'sandbox-chat', input, ...more }).finalResponse()
}

const weather = { type: 'function', name: 'weather', parameters: { type: 'object' }, strict: false }
const room = { type: 'namespace', name: 'mcp__room', description: 'a room', tools: [{ type: 'function', name: 'open', parameters: { type: 'object' } }] }
const patch = { type: 'custom', name: 'patch' }

test('the sandbox gives the same text and usage in a stream and in a plain reply', async () => {
  const [whole, stream] = await Promise.all([create('hello there'), streamed('hello there')])
  expect(whole.output_text).toContain('simulated')
  expect(stream.output_text).toBe(whole.output_text)
  expect(stream.usage).toEqual(whole.usage)
})

test('the sandbox stops at max_output_tokens and says so, and puts its reasoning next to the answer', async () => {
  const cut = await create('hello', { max_output_tokens: 3 })
  expect(cut).toMatchObject({ status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' }, usage: { output_tokens: 3 } })
  const thought = await streamed('why', { model: 'sandbox-reasoning' })
  expect(thought.output.map(item => item.type)).toEqual(['reasoning', 'message'])
  expect(thought.usage?.output_tokens_details.reasoning_tokens).toBeGreaterThan(0)
})

test('the sandbox calls functions, tools of namespaces and freeform tools, and answers a tool result with text', async () => {
  const tools = [weather, room, patch]
  for (const ask of [create, streamed]) {
    expect((await ask('call weather {"city":"Pune"}', { tools })).output[0]).toMatchObject({
      type: 'function_call',
      name: 'weather',
      arguments: '{"city":"Pune"}',
    })
    expect((await ask('call mcp__room__open {}', { tools })).output[0]).toMatchObject({ type: 'function_call', namespace: 'mcp__room', name: 'open' })
    expect((await ask('call patch {"input":"*** x"}', { tools })).output[0]).toMatchObject({ type: 'custom_tool_call', name: 'patch', input: '*** x' })
  }
  const answered = await create([
    { role: 'user', content: 'call weather' },
    { type: 'function_call', call_id: 'c1', name: 'weather', arguments: '{}' },
    { type: 'function_call_output', call_id: 'c1', output: [{ type: 'input_text', text: 'sunny and warm' }] },
  ])
  expect(answered.output_text).toContain('answered with 3 words')
})
