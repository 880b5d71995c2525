import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../harness/app.ts'
import type { UpstreamServer } from '../../harness/upstream-server.ts'

const hello = [{ role: 'user', content: 'Hello there' }]
const tool = { type: 'function', function: { name: 'look', description: 'd', parameters: { type: 'object', properties: {} } } }

/** A client API with one request, and fields whose loss a caller would notice. */
interface Client {
  readonly path: string
  readonly body: Readonly<Record<string, unknown>>
  readonly fields: readonly Readonly<Record<string, unknown>>[]
}

const clients: Readonly<Record<string, Client>> = {
  chat: {
    path: '/v1/chat/completions',
    body: { messages: hello, max_tokens: 2000 },
    fields: [
      { temperature: 0.3 },
      { top_p: 0.5 },
      { top_k: 7 },
      { min_p: 0.1 },
      { seed: 7 },
      { stop: ['END'] },
      { n: 2 },
      { logit_bias: { 50256: -100 } },
      { logprobs: true },
      { top_logprobs: 3 },
      { frequency_penalty: 0.5 },
      { presence_penalty: 0.5 },
      { repetition_penalty: 1.2 },
      { user: 'u-1' },
      { metadata: { team: 'a' } },
      { service_tier: 'flex' },
      { store: true },
      { prediction: { type: 'content', content: 'x' } },
      { modalities: ['text', 'audio'] },
      { audio: { voice: 'alloy', format: 'wav' } },
      { web_search_options: { search_context_size: 'low' } },
      { response_format: { type: 'json_object' } },
      { response_format: { type: 'json_schema', json_schema: { name: 'a', schema: { type: 'object', properties: { a: { type: 'string' } } } } } },
      { reasoning_effort: 'high' },
      { verbosity: 'low' },
      { prompt_cache_key: 'k' },
      { safety_identifier: 's' },
      { parallel_tool_calls: false, tools: [tool] },
      { tools: [tool], tool_choice: 'required' },
      { tools: [{ type: 'custom', custom: { name: 'c' } }] },
      { functions: [{ name: 'old', parameters: { type: 'object', properties: {} } }] },
      { vendor_thing: { deep: [1, 2] } },
    ],
  },
  messages: {
    path: '/v1/messages',
    body: { messages: hello, max_tokens: 2000 },
    fields: [
      { temperature: 0.3 },
      { top_p: 0.5 },
      { top_k: 7 },
      { stop_sequences: ['END'] },
      { metadata: { user_id: 'u-1' } },
      { service_tier: 'standard_only' },
      { thinking: { type: 'enabled', budget_tokens: 1024 } },
      { system: [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } }] },
      { tools: [{ name: 'look', input_schema: { type: 'object', properties: {} } }], tool_choice: { type: 'any', disable_parallel_tool_use: true } },
      { container: 'c-1' },
      { mcp_servers: [{ type: 'url', url: 'https://mcp.example.test', name: 'm' }] },
      { context_management: { edits: [{ type: 'clear_tool_uses_20250919' }] } },
      { output_config: { effort: 'low' } },
      { inference_geo: 'us' },
      { vendor_thing: true },
    ],
  },
  responses: {
    path: '/v1/responses',
    body: { input: 'Hello there', max_output_tokens: 2000 },
    fields: [
      { instructions: 'Be brief.' },
      { temperature: 0.3 },
      { top_p: 0.5 },
      { reasoning: { effort: 'high', summary: 'auto' } },
      { text: { format: { type: 'json_object' }, verbosity: 'low' } },
      { tools: [{ type: 'function', name: 'look', parameters: { type: 'object', properties: {} }, strict: false }], tool_choice: 'required' },
      { parallel_tool_calls: false, tools: [{ type: 'function', name: 'look', parameters: { type: 'object', properties: {} } }] },
      { tools: [{ type: 'web_search' }] },
      { metadata: { team: 'a' } },
      { user: 'u-1' },
      { safety_identifier: 's' },
      { prompt_cache_key: 'k' },
      { service_tier: 'flex' },
      { top_logprobs: 3 },
      { truncation: 'auto' },
      { max_tool_calls: 2 },
      { include: ['message.output_text.logprobs'] },
      { previous_response_id: 'resp_1' },
      { conversation: 'conv_1' },
      { prompt: { id: 'pmpt_1' } },
      { background: true },
      { store: true },
      { vendor_thing: true },
    ],
  },
}
const models = { openai: 'openai-model', anthropic: 'anthropic-model', gemini: 'gemini-model', responses: 'responses-model' } as const

describe('fields that a provider’s API does not have', () => {
  let app: TestApp
  let servers: readonly UpstreamServer[]
  beforeAll(async () => {
    app = await startApp({ dialects: true, env: { CIRCUIT_FAILURES: '1000' } })
    servers = [app.alpha, app.others.claude, app.others.gem, app.others.resp]
  })
  afterAll(() => app.stop())

  /** Returns the request to the provider, the fields named as dropped, and the reply to the caller. */
  async function ask({ path, body }: Client, model: string, field: Readonly<Record<string, unknown>>) {
    for (const server of servers) server.reset()
    const reply = await app.call('POST', path, { model, ...body, ...field })
    const sent = servers.flatMap(server => server.requests).at(-1)
    return { reply, sent: sent?.json ?? null, dropped: reply.headers.get('x-br-dropped-params')?.split(',') ?? [] }
  }
  const named = (dropped: readonly string[], field: object): boolean =>
    Object.keys(field).some(name => dropped.some(each => each === name || each.startsWith(`${name}.`) || each.startsWith(`${name}[`)))

  for (const [name, client] of Object.entries(clients)) {
    test(`DROP-01 ${name}: in every dialect, each field reaches the provider in some form, is named in x-br-dropped-params, or is refused`, async () => {
      const silent: string[] = []
      for (const [dialect, model] of Object.entries(models)) {
        const plain = await ask(client, model, {})
        expect([plain.reply.status, plain.dropped], `${dialect} ${plain.reply.text}`).toEqual([200, []])
        for (const field of client.fields) {
          const { reply, sent, dropped } = await ask(client, model, field)
          expect(reply.status, `${dialect} ${JSON.stringify(field)} ${reply.text}`).toBeLessThan(500)
          const isRefused = reply.status === 400 && typeof reply.json.error.message === 'string' && sent === null
          const isCarried = reply.status === 200 && JSON.stringify(sent) !== JSON.stringify(plain.sent)
          // A field that the reply repeats is not lost either.
          const isReturned = reply.status === 200 && Object.entries(field).every(([key, value]) => JSON.stringify(reply.json[key]) === JSON.stringify(value))
          const isNamed =
            reply.status === 200 && (named(dropped, field) || (JSON.stringify(field).includes('cache_control') && dropped.includes('cache_control')))
          if (!isRefused && !isCarried && !isReturned && !isNamed) silent.push(`${dialect}: ${JSON.stringify(field)} -> ${reply.status} ${dropped.join(',')}`)
        }
      }
      expect(silent).toEqual([])
    })
  }

  test('on an own key, a provider with the client’s own API gets every field, and none is named as dropped', async () => {
    for (const [client, model] of [
      [clients['chat'], models.openai],
      [clients['responses'], models.responses],
    ] as const) {
      if (client === undefined) throw new Error('no such client')
      for (const field of client.fields) {
        const { reply, sent, dropped } = await ask(client, model, { ...field, upstream_key: 'sk-my-own-key-0001' })
        // `store` is an exception, because the gateway lets no provider store responses.
        const isOurs = client.path === '/v1/responses' && 'store' in field
        if (reply.status === 200 && !isOurs) expect([dropped, sent], JSON.stringify(field)).toEqual([[], expect.objectContaining(field)])
      }
    }
  })
})
