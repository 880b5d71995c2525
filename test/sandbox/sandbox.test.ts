import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
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

const ask = (content: string, more: Partial<OpenAI.ChatCompletionCreateParamsNonStreaming> = {}): Promise<OpenAI.ChatCompletion> =>
  client.chat.completions.create({ model: 'sandbox-chat', messages: [{ role: 'user', content }], ...more })

async function streamed(content: string, more: Partial<OpenAI.ChatCompletionCreateParamsStreaming> = {}): Promise<OpenAI.ChatCompletionChunk[]> {
  const stream = await client.chat.completions.create({
    model: 'sandbox-chat',
    messages: [{ role: 'user', content }],
    stream: true,
    stream_options: { include_usage: true },
    ...more,
  })
  const chunks: OpenAI.ChatCompletionChunk[] = []
  for await (const chunk of stream) chunks.push(chunk)
  return chunks
}
const textOf = (chunks: readonly OpenAI.ChatCompletionChunk[]): string => chunks.map(chunk => chunk.choices[0]?.delta.content ?? '').join('')
const tools: OpenAI.ChatCompletionTool[] = [{ type: 'function', function: { name: 'weather', parameters: { type: 'object' } } }]

describe('the sandbox with the OpenAI SDK', () => {
  test('says that it is simulated, and gives the same text and usage in a stream and in a plain reply', async () => {
    const whole = await ask('hello there')
    const chunks = await streamed('hello there')
    expect(whole.choices[0]?.message.content).toContain('simulated')
    expect(textOf(chunks)).toBe(whole.choices[0]?.message.content)
    expect(chunks.at(-1)?.usage).toEqual(whole.usage)
    expect(whole.usage?.total_tokens).toBe((whole.usage?.prompt_tokens ?? 0) + (whole.usage?.completion_tokens ?? 0))
    expect(new Set(chunks.map(chunk => chunk.id)).size).toBe(1)
  })

  test('a long run of white space at the end of a prompt is no word, and takes no time', async () => {
    const [short, long] = [await ask('hello there'), await ask(`hello there${' '.repeat(300_000)}`)]
    expect(long.usage?.prompt_tokens).toBe(short.usage?.prompt_tokens)
  })

  test('stops at max_tokens and says so', async () => {
    const reply = await ask('hello', { max_tokens: 3 })
    expect(reply.choices[0]?.finish_reason).toBe('length')
    expect(reply.usage?.completion_tokens).toBe(3)
  })

  test('puts reasoning next to the answer and counts it', async () => {
    const reply = await ask('why', { model: 'sandbox-reasoning' })
    expect(reply.choices[0]?.message).toHaveProperty('reasoning_content')
    expect(reply.usage?.completion_tokens_details?.reasoning_tokens).toBeGreaterThan(0)
  })

  test("calls the tool that the prompt names, streamed and not, and answers the tool's result with text", async () => {
    const reply = await ask('call weather {"city": "Pune"}', { tools })
    const call = reply.choices[0]?.message.tool_calls?.[0]
    expect(reply.choices[0]?.finish_reason).toBe('tool_calls')
    expect(call).toMatchObject({ type: 'function', function: { name: 'weather', arguments: '{"city":"Pune"}' } })
    const chunks = await streamed('call weather {"city": "Pune"}', { tools })
    expect(chunks.map(chunk => chunk.choices[0]?.delta.tool_calls?.[0]?.function?.arguments ?? '').join('')).toBe('{"city":"Pune"}')
    const after = await client.chat.completions.create({
      model: 'sandbox-chat',
      tools,
      messages: [
        { role: 'user', content: 'call weather {}' },
        { role: 'assistant', content: null, tool_calls: call ? [call] : [] },
        { role: 'tool', tool_call_id: call?.id ?? '', content: 'sunny and dry' },
      ],
    })
    expect(after.choices[0]?.message.content).toContain('3 words')
  })

  test('takes its command from the last text part of the message, because programs put notes before the text that a person typed', async () => {
    const content = ['a note of the program', 'fail 418'].map(text => ({ type: 'text' as const, text }))
    await expect(client.chat.completions.create({ model: 'sandbox-chat', messages: [{ role: 'user', content }] })).rejects.toMatchObject({ status: 418 })
  })

  test('does not call a tool that was not offered', async () => {
    expect((await ask('call weather {}')).choices[0]?.finish_reason).toBe('stop')
  })

  test('fails with the status that the prompt names, and with 404 for an unknown model', async () => {
    await expect(ask('fail 503')).rejects.toMatchObject({ status: 503 })
    await expect(ask('fail 429')).rejects.toMatchObject({ status: 429 })
    await expect(ask('hi', { model: 'gpt-nothing' })).rejects.toMatchObject({ status: 404, code: 'model_not_found' })
    await expect(ask('hi', { model: 'sandbox-embed' })).rejects.toMatchObject({ status: 400 })
  })

  test('breaks a stream before its end when the prompt says so', async () => {
    await expect(streamed('fail stream')).rejects.toThrow()
  })

  test('when the prompt is hang, sends nothing until the client disconnects', async () => {
    await expect(client.chat.completions.create({ model: 'sandbox-chat', messages: [{ role: 'user', content: 'hang' }] }, { timeout: 50 })).rejects.toThrow(
      /timed out/i,
    )
  })

  test('sends as many tokens as the command long asks for; with the command slow, the stream still has all its chunks', async () => {
    expect((await ask('long 5000')).usage?.completion_tokens).toBe(5000)
    expect(textOf(await streamed('slow 2'))).toBe('w1 w2')
  })

  test('embeds a text into a unit vector that is always the same, as floats and as base64', async () => {
    const floats = await client.embeddings.create({ model: 'sandbox-embed', input: ['red apple', 'green apple', 'tax law'], encoding_format: 'float' })
    const [a, b, c] = floats.data.map(item => item.embedding)
    const dot = (x: number[] = [], y: number[] = []): number => x.reduce((sum, value, index) => sum + value * (y[index] ?? 0), 0)
    expect(a).toHaveLength(1024)
    expect(dot(a, a)).toBeCloseTo(1, 5)
    expect(dot(a, b)).toBeGreaterThan(dot(a, c))
    const decoded = await client.embeddings.create({ model: 'sandbox-embed', input: 'red apple' })
    expect(decoded.data[0]?.embedding[7]).toBeCloseTo(a?.[7] ?? 9, 6)
    expect(floats.usage).toEqual({ prompt_tokens: 6, total_tokens: 6 })
  })

  test('lists its models', async () => {
    expect((await client.models.list()).data.map(model => model.id)).toEqual([
      'sandbox-chat',
      'sandbox-reasoning',
      'sandbox-vision',
      'sandbox-embed',
      'sandbox-image',
      'sandbox-audio',
      'sandbox-speech',
      'sandbox-rerank',
      'sandbox-moderation',
    ])
  })
})

describe('the sandbox in the Anthropic messages format', () => {
  const post = (body: unknown): Promise<Response> =>
    fetch(`${sandbox.url}/messages`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })
  const base = { model: 'sandbox-chat', max_tokens: 100, messages: [{ role: 'user', content: 'hello' }] }

  test('gives the same text and usage in a plain reply and in a stream', async () => {
    const whole = (await (await post(base)).json()) as { content: { text: string }[]; usage: { output_tokens: number }; stop_reason: string }
    const text = await (await post({ ...base, stream: true })).text()
    const events = [...text.matchAll(/^data: (.*)$/gm)].map(
      match => JSON.parse(match[1] ?? '') as { type: string; delta?: { text?: string }; usage?: { output_tokens: number } },
    )
    expect(whole.stop_reason).toBe('end_turn')
    expect(events.map(event => event.delta?.text ?? '').join('')).toBe(whole.content[0]?.text)
    expect(events.at(-2)?.usage?.output_tokens).toBe(whole.usage.output_tokens)
    expect(events.at(-1)?.type).toBe('message_stop')
  })

  test('calls tools and refuses unknown models in the format of this API', async () => {
    const called = (await (
      await post({ ...base, tools: [{ name: 'find', input_schema: {} }], messages: [{ role: 'user', content: 'call find {"q":1}' }] })
    ).json()) as { content: unknown[]; stop_reason: string }
    expect(called.stop_reason).toBe('tool_use')
    expect(called.content[0]).toMatchObject({ type: 'tool_use', name: 'find', input: { q: 1 } })
    const refused = await post({ ...base, model: 'x' })
    expect(refused.status).toBe(404)
    expect(await refused.json()).toMatchObject({ type: 'error', error: { type: 'not_found_error' } })
  })
})
