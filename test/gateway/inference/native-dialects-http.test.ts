import OpenAI from 'openai'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { systemClock } from '../../../src/platform/clock.ts'
import { systemIds } from '../../../src/platform/values/ids.ts'
import { startSandbox } from '../../../src/sandbox/sandbox.ts'
import { startApp, type TestApp } from '../../harness/app.ts'
import { usageRows } from '../../harness/usage-rows.ts'

const price = { input_inr_per_mtok: 10, output_inr_per_mtok: 40, source: 'test', as_of: '2026-01-01' }
const tool: OpenAI.ChatCompletionTool = {
  type: 'function',
  function: { name: 'weather', parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'], additionalProperties: false } },
}

describe('the OpenAI SDK on models whose providers speak other formats', () => {
  let app: TestApp
  let client: OpenAI
  let sandbox: Awaited<ReturnType<typeof startSandbox>>

  beforeAll(async () => {
    sandbox = await startSandbox({ clock: systemClock, ids: systemIds, host: '127.0.0.1' })
    const box = (id: string, dialect: string) => ({ id, base_url: sandbox.url, dialect, auth: 'none', residency: 'global' })
    const model = (id: string, provider: string, upstream_model: string, more: object = {}) => ({
      id,
      kind: 'chat',
      context_length: 100_000,
      max_output_tokens: 16_000,
      tools: true,
      reasoning: true,
      routes: [{ provider, upstream_model, ...price }],
      ...more,
    })
    app = await startApp({
      dialects: true,
      operatorFile: urls => ({
        providers: [{ id: 'alpha', base_url: urls.alpha, residency: 'global' }, box('boxclaude', 'anthropic'), box('boxgemini', 'gemini')],
        models: [model('on-claude', 'boxclaude', 'sandbox-reasoning'), model('on-gemini', 'boxgemini', 'sandbox-reasoning')],
      }),
    })
    client = new OpenAI({ baseURL: `${app.baseUrl}/v1`, apiKey: app.key, maxRetries: 0 })
    const cookie = await app.signIn()
    const saved = await app.call('PUT', '/me/byok/claude', { key: 'sk-ant-saved-0123456789abcdef' }, { cookie })
    expect(saved.status, saved.text).toBeLessThan(300)
  })
  afterAll(async () => {
    await app.stop()
    await sandbox.close()
  })
  beforeEach(() => {
    for (const server of [app.others.claude, app.others.gem]) server.reset()
  })

  test("CHAT-29 a chat call of a claude id with a saved key is translated to the provider's format and back to a chat completion", async () => {
    const reply = await client.chat.completions.create({
      model: 'claude-test',
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'Hi' },
      ],
    })
    expect(reply.object).toBe('chat.completion')
    expect(reply.model).toBe('claude-test')
    expect(reply.choices[0]).toMatchObject({ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'Hello from the test upstream' } })
    expect(reply.usage).toMatchObject({ prompt_tokens: 12, completion_tokens: 5, total_tokens: 17 })
    const [request] = app.others.claude.requests
    expect([request?.path, request?.headers['x-api-key'], request?.headers['anthropic-version']]).toEqual([
      '/v1/messages',
      'sk-ant-saved-0123456789abcdef',
      '2023-06-01',
    ])
    expect(request?.headers.authorization).toBeUndefined()
    expect(request?.json).toEqual({
      model: 'claude-test',
      max_tokens: 8192,
      system: 'Be brief.',
      messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }],
    })
    expect((await usageRows(app))[0]).toMatchObject({ provider: 'claude', model: 'claude-test', promptTokens: 12n, completionTokens: 5n, costUinr: 0n })
  })

  test('CHAT-29 a streamed claude call has chunks with one id and the usage in the last one, and is charged like the whole reply', async () => {
    const stream = await client.chat.completions.create({
      model: 'claude-test',
      messages: [{ role: 'user', content: 'Hi' }],
      stream: true,
      stream_options: { include_usage: true },
    })
    const chunks: OpenAI.ChatCompletionChunk[] = []
    for await (const chunk of stream) chunks.push(chunk)
    expect(chunks.map(chunk => chunk.choices[0]?.delta.content ?? '').join('')).toBe('Hello from the test upstream')
    expect(new Set(chunks.map(({ id, model, object }) => `${id} ${model} ${object}`)).size).toBe(1)
    expect(chunks.filter(chunk => chunk.choices[0]?.finish_reason === 'stop').length).toBe(1)
    expect(chunks.at(-1)?.usage).toMatchObject({ prompt_tokens: 12, completion_tokens: 5, total_tokens: 17 })
    expect(app.others.claude.requests[0]?.json).toMatchObject({ stream: true })
    expect((await usageRows(app))[0]).toMatchObject({ provider: 'claude', promptTokens: 12n, completionTokens: 5n, costUinr: 0n })
  })

  for (const model of ['on-claude', 'on-gemini'])
    test(`a sequence of tool calls works, whole and streamed: ${model}`, async () => {
      const asked: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: 'call weather {"city":"Pune"}' }]
      const first = await client.chat.completions.create({ model, messages: asked, tools: [tool], max_tokens: 4000 })
      const message = first.choices[0]?.message
      expect(first.choices[0]?.finish_reason).toBe('tool_calls')
      const call = message?.tool_calls?.[0]
      expect(call).toMatchObject({ type: 'function', function: { name: 'weather', arguments: '{"city":"Pune"}' } })
      if (message === undefined || call === undefined) throw new Error('no call')
      const messages: OpenAI.ChatCompletionMessageParam[] = [...asked, message, { role: 'tool', tool_call_id: call.id, content: '31 degrees' }]
      const second = await client.chat.completions.create({ model, messages, tools: [tool], max_tokens: 4000 })
      expect(second.choices[0]?.message.content).toContain('the tool answered')
      const runner = client.chat.completions.stream({ model, messages, tools: [tool], max_tokens: 4000, stream_options: { include_usage: true } })
      const streamed = await runner.finalChatCompletion()
      expect(streamed.choices[0]?.message.content).toBe(second.choices[0]?.message.content)
      expect(streamed.usage).toMatchObject({ prompt_tokens: second.usage?.prompt_tokens, completion_tokens: second.usage?.completion_tokens })
      const calls = await client.chat.completions.stream({ model, messages: asked, tools: [tool], max_tokens: 4000 }).finalChatCompletion()
      expect(calls.choices[0]?.message.tool_calls?.[0]).toMatchObject({ function: { name: 'weather', arguments: '{"city":"Pune"}' } })
    })

  for (const model of ['on-claude', 'on-gemini'])
    test(`the provider accepts its thinking when the next turn sends it back: ${model}`, async () => {
      const asked = [{ role: 'user', content: 'why is the sky blue' }]
      const body = { model, reasoning_effort: 'low', max_tokens: 4000 }
      const first = await app.call('POST', '/v1/chat/completions', { ...body, messages: asked })
      expect(first.json.choices[0].message.reasoning_content, first.text).toContain('Simulated reasoning')
      const next = await app.call('POST', '/v1/chat/completions', {
        ...body,
        messages: [...asked, first.json.choices[0].message, { role: 'user', content: 'and at night?' }],
      })
      expect(next.status, next.text).toBe(200)
      const broken = await app.call('POST', '/v1/chat/completions', { ...body, messages: [{ role: 'user', content: 'fail 429' }] })
      expect([broken.status, broken.json.error.code]).toEqual([502, 'all_routes_failed'])
      const unknown = await app.call('POST', '/v1/chat/completions', { ...body, messages: [{ role: 'user', content: 'fail 400' }] })
      expect([unknown.status, unknown.json.error.message]).toEqual([400, 'Simulated failure with status 400.'])
    })

  test('a stream that breaks off ends with an error that the SDK throws', async () => {
    for (const model of ['on-claude', 'on-gemini']) {
      const stream = await client.chat.completions.create({ model, messages: [{ role: 'user', content: 'fail stream' }], stream: true })
      const read = async (): Promise<void> => {
        for await (const _chunk of stream);
      }
      await expect(read(), model).rejects.toThrow()
    }
  })
})
