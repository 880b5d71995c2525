import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from '@modelcontextprotocol/client'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from './harness/app.ts'

const info = { name: 'test', version: '1' }
const model = 'sandbox-chat'
const say = (content: string) => [{ role: 'user' as const, content }]

/** The whole story on the sandbox provider, told once by each client that agents really use. */
describe('the main job, from the first token to the last', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({ env: { SANDBOX: 'on', FOLDER_STORE: 'on' } })
    await app.gateway.app.memory.useFolder(app.orgId)
  })
  afterAll(() => app.stop())

  const setBudget = async (id: number, inr: number | null) =>
    expect((await app.call('POST', `/v1/me/agents/${id}/budget`, { monthly_budget_inr: inr })).status).toBe(200)
  const revoke = async (id: number) => expect((await app.call('POST', `/v1/me/agents/${id}/revoke`, {})).json.status).toBe('revoked')
  const object = (key: string) => `/v1/me/memory/o?key=${encodeURIComponent(key)}`

  test('an OpenAI SDK client works as an agent: chat, stream, tool call, embeddings, shared memory, usage, budget, revoke', async () => {
    const agent = await app.newAgent('openai-agent')
    const colleague = await app.newAgent('openai-colleague')
    await setBudget(agent.id, 10)
    let requests = 0
    const counted: typeof fetch = (...args) => {
      requests++
      return fetch(...args)
    }
    // Default retries: what must not be retried is told to the SDK by the gateway.
    const client = new OpenAI({ baseURL: `${app.baseUrl}/v1`, apiKey: agent.token, fetch: counted })

    const whole = await client.chat.completions.create({ model, messages: say('Good morning') })
    const text = whole.choices[0]?.message.content ?? ''
    expect(text).toContain('simulated')
    expect(whole.usage?.total_tokens).toBeGreaterThan(0)

    let streamed = ''
    let usage: OpenAI.CompletionUsage | null | undefined
    let finish: string | null | undefined
    for await (const chunk of await client.chat.completions.create({
      model,
      messages: say('Good morning'),
      stream: true,
      stream_options: { include_usage: true },
    })) {
      streamed += chunk.choices[0]?.delta.content ?? ''
      finish = chunk.choices[0]?.finish_reason ?? finish
      usage = chunk.usage ?? usage
    }
    expect([streamed, finish, usage?.total_tokens]).toEqual([text, 'stop', whole.usage?.total_tokens])

    const tools: OpenAI.ChatCompletionTool[] = [
      {
        type: 'function',
        function: { name: 'weather', description: 'Weather of a city', parameters: { type: 'object', properties: { city: { type: 'string' } } } },
      },
    ]
    const question = say('call weather {"city":"Pune"}')
    const asked = await client.chat.completions.create({ model, messages: question, tools })
    expect(asked.choices[0]?.finish_reason).toBe('tool_calls')
    const call = asked.choices[0]?.message.tool_calls?.[0]
    if (call?.type !== 'function' || asked.choices[0] === undefined) throw new Error('no tool was called')
    expect([call.function.name, JSON.parse(call.function.arguments)]).toEqual(['weather', { city: 'Pune' }])
    const answered = await client.chat.completions.create({
      model,
      messages: [...question, asked.choices[0].message, { role: 'tool', tool_call_id: call.id, content: 'sunny, 31 degrees' }],
      tools,
    })
    expect(answered.choices[0]?.finish_reason).toBe('stop')
    let pieces = ''
    for await (const chunk of await client.chat.completions.create({ model, messages: question, tools, stream: true }))
      pieces += chunk.choices[0]?.delta.tool_calls?.[0]?.function?.arguments ?? ''
    expect(JSON.parse(pieces)).toEqual({ city: 'Pune' })

    const embedded = await client.embeddings.create({ model: 'sandbox-embed', input: ['one', 'two'], dimensions: 8 })
    expect(embedded.data.map(row => row.embedding.length)).toEqual([8, 8])

    expect((await app.call('PUT', object('agents/openai/plan.md'), 'step one', { token: agent.token })).status).toBeLessThan(300)
    expect((await app.call('GET', object('agents/openai/plan.md'), undefined, { token: colleague.token })).text).toBe('step one')

    const row = (await app.call('GET', '/v1/usage', undefined, { token: agent.token })).json.by_agent.find((each: { id: number }) => each.id === agent.id)
    expect([row.name, row.requests]).toEqual(['openai-agent', 6])
    expect(row.value_inr).toBeGreaterThan(0)
    const [budget] = (await app.call('GET', '/v1/me/budgets', undefined, { token: agent.token })).json.budgets
    expect(budget).toMatchObject({ scope: 'agent', cap_inr: 10, held_inr: 0, state: 'under' })
    expect(budget.spent_inr).toBeCloseTo(row.value_inr, 9)

    await setBudget(agent.id, 0.000001)
    requests = 0
    const refused = await client.chat.completions.create({ model, messages: say('More') }).catch((error: unknown) => error)
    expect(refused).toBeInstanceOf(OpenAI.RateLimitError)
    expect(refused).toMatchObject({ status: 429, code: 'agent_budget_exceeded' })
    expect(requests).toBe(1)

    await setBudget(agent.id, 10)
    const stopped = client.chat.completions.create({ model, messages: say('slow 6000'), stream: true }).then(async stream => {
      let seen = 0
      for await (const chunk of stream) if (chunk.choices[0]?.delta.content && ++seen === 2) await revoke(agent.id)
      return 'ended without an error'
    })
    const cut = await stopped.catch((error: unknown) => error)
    expect(cut).toBeInstanceOf(OpenAI.APIError)
    expect(cut).toMatchObject({ code: 'agent_revoked' })
    requests = 0
    const dead = await client.chat.completions.create({ model, messages: say('Anyone?') }).catch((error: unknown) => error)
    expect(dead).toBeInstanceOf(OpenAI.AuthenticationError)
    expect(dead).toMatchObject({ status: 401, code: 'invalid_api_key' })
    expect(requests).toBe(1)
    const alive = new OpenAI({ baseURL: `${app.baseUrl}/v1`, apiKey: colleague.token, maxRetries: 0 })
    expect((await alive.chat.completions.create({ model, messages: say('Still here?') })).choices).toHaveLength(1)
  })

  // biome-ignore lint/suspicious/noExplicitAny: test assertions read arbitrary JSON.
  type Data = any
  interface ToolClient {
    names(): Promise<string[]>
    call(name: string, args?: Record<string, unknown>, onProgress?: () => void): Promise<{ isError: boolean; text: string; data: Data }>
    close(): Promise<void>
  }
  const replyOf = (result: Data) => ({ isError: result.isError === true, text: result.content[0]?.text ?? '', data: result.structuredContent })
  const address = () => new URL(`${app.baseUrl}/mcp`)
  const bearer = (token: string) => ({ requestInit: { headers: { authorization: `Bearer ${token}` } } })

  const clients: readonly (readonly [string, (token: string) => Promise<ToolClient>])[] = [
    [
      'an MCP client of SDK 1.x',
      async token => {
        const client = new ClientV1(info)
        await client.connect(new TransportV1(address(), bearer(token)) as never)
        return {
          names: async () => (await client.listTools()).tools.map(tool => tool.name),
          call: async (name, args = {}, onprogress) => replyOf(await client.callTool({ name, arguments: args }, undefined, onprogress ? { onprogress } : {})),
          close: () => client.close(),
        }
      },
    ],
    [
      'an MCP client of SDK 2.x in the 2026-07-28 era',
      async token => {
        const client = new ClientV2(info, { versionNegotiation: { mode: { pin: '2026-07-28' } } })
        await client.connect(new TransportV2(address(), bearer(token)))
        return {
          names: async () => (await client.listTools()).tools.map(tool => tool.name),
          call: async (name, args = {}, onprogress) => replyOf(await client.callTool({ name, arguments: args }, onprogress ? { onprogress } : {})),
          close: () => client.close(),
        }
      },
    ],
  ]

  for (const [index, [title, connect]] of clients.entries()) {
    test(`${title} works as an agent: whoami, chat, shared memory, usage, budget, revoke`, async () => {
      const agent = await app.newAgent(`mcp-agent-${index}`)
      const colleague = await app.newAgent(`mcp-colleague-${index}`)
      await setBudget(agent.id, 10)
      const client = await connect(agent.token)
      const other = await connect(colleague.token)
      expect(await client.names()).toEqual(expect.arrayContaining(['chat', 'memory_read', 'memory_write', 'usage_get', 'budget_get', 'whoami']))
      expect((await client.call('whoami')).data).toMatchObject({ principal: { kind: 'agent', id: agent.id, name: `mcp-agent-${index}` } })

      const chat = await client.call('chat', { prompt: 'Good morning', model })
      expect([chat.isError, chat.data.finish_reason]).toEqual([false, 'stop'])
      expect(chat.text).toContain('simulated')
      expect(chat.data.usage.total_tokens).toBeGreaterThan(0)

      const key = `agents/mcp-${index}/plan.md`
      const written = await client.call('memory_write', { key, content: 'step one' })
      expect(written.isError).toBe(false)
      const read = await other.call('memory_read', { key })
      expect(read.isError).toBe(false)
      expect(read.text).toContain('step one')
      expect(read.text).toContain(`mcp-agent-${index}`)
      expect((await other.call('memory_write', { key, content: 'step two', if_match: read.data.etag })).isError).toBe(false)
      expect((await client.call('memory_write', { key, content: 'lost', if_match: read.data.etag })).data.code).toBe('memory_conflict')
      expect((await client.call('memory_read', { key })).text).toContain('step two')

      const row = (await client.call('usage_get')).data.by_agent.find((each: { id: number }) => each.id === agent.id)
      expect(row).toMatchObject({ requests: 1, total_tokens: chat.data.usage.total_tokens })
      const [budget] = (await client.call('budget_get')).data.budgets
      expect(budget).toMatchObject({ scope: 'agent', cap_inr: 10, held_inr: 0 })
      expect(budget.spent_inr).toBeCloseTo(row.value_inr, 9)

      await setBudget(agent.id, 0.000001)
      const refused = await client.call('chat', { prompt: 'More', model })
      expect([refused.isError, refused.data.code, refused.data.should_retry]).toEqual([true, 'agent_budget_exceeded', false])
      expect(refused.text).toContain('Do not retry')

      await setBudget(agent.id, 10)
      const cut = await client.call('chat', { prompt: 'slow 6000', model }, () => void revoke(agent.id))
      expect([cut.isError, cut.data.code, cut.data.reason]).toEqual([true, 'agent_revoked', 'agent_revoked'])
      await expect(client.call('whoami')).rejects.toThrow()
      expect((await other.call('chat', { prompt: 'Still here?', model })).isError).toBe(false)
      await client.close()
      await other.close()
    })
  }
})
