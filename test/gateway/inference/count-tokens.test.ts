import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { statement } from '../../../src/platform/db/db.ts'
import { HeavyTurns } from '../../../src/platform/loop/heavy-turns.ts'
import { startApp, type TestApp } from '../../harness/app.ts'

let app: TestApp

beforeAll(async () => {
  app = await startApp({ dialects: true })
})
afterAll(() => app.stop())
beforeEach(() => app.others.claude.reset())

const path = '/v1/messages/count_tokens'
const messages = [{ role: 'user', content: 'Hello there' }]
const own = () => ({ token: null, headers: { 'x-br-api-key': app.key, authorization: 'Bearer sk-ant-oat01-own' } })
const events = statement<[], { readonly count: number }>('test.count_tokens_events', 'select count(*)::int as "count" from usage_events')

test('CTOK-01 every model has a token count, from its provider for claude and marked as an estimate for others, and nothing is charged', async () => {
  const { claude } = app.others
  const sent = { model: 'claude-test', messages, thinking: { type: 'enabled', budget_tokens: 2000 } }
  claude.script({ body: { input_tokens: 12 } })
  const relayed = await app.call('POST', `${path}?beta=true`, sent, own())
  expect([relayed.status, relayed.json, relayed.headers.get('x-br-estimate')]).toEqual([200, { input_tokens: 12 }, null])
  expect(claude.requests[0]).toMatchObject({
    path: '/v1/messages/count_tokens?beta=true',
    json: sent,
    headers: { authorization: 'Bearer sk-ant-oat01-own', 'anthropic-version': '2023-06-01' },
  })
  claude.script({ status: 400, body: '{"type":"error","error":{"type":"invalid_request_error","message":"bad"}}' })
  const refused = await app.call('POST', path, sent, own())
  expect([refused.status, refused.json.error.message]).toEqual([400, 'bad'])
  claude.script({ reset: true })
  expect((await app.call('POST', path, sent, own())).status).toBe(502)

  const models: string[] = (await app.call('GET', '/v1/models')).json.data.flatMap(({ id }: { id: string }) =>
    id.startsWith('claude-') || id === 'anthropic-model' ? [] : [id],
  )
  expect(models.length).toBeGreaterThan(20)
  for (const model of [...models, 'auto', 'best']) {
    const counted = await app.call('POST', path, { model, messages })
    expect([model, counted.status, counted.headers.get('x-br-estimate')]).toEqual([model, 200, 'true'])
    expect(counted.json.input_tokens).toBeGreaterThan(3)
  }
  await app.gateway.app.limits.flushNow()
  expect(await app.db.one(events)).toEqual({ count: 0 })
  // These are no calls, but the prompts were sent to a provider, so the attestation counts them.
  const { payload } = (await app.call('GET', '/v1/org/residency/attestation')).json
  expect([payload.summary.total, payload.token_counts]).toEqual([0, { total: 3, india_requests: 0, global_requests: 3 }])
  expect((await app.call('GET', '/v1/org/dpia')).json.token_counts).toEqual([
    { model: 'claude-test', provider: expect.any(String), residency: 'global', requests: 3 },
  ])
})

test('case 87 tools, thinking, images and documents count, and a request that cannot be counted gets an error in the messages format', async () => {
  const count = async (more: object) => (await app.call('POST', path, { model: 'test-model', messages, ...more })).json.input_tokens
  const bare = await count({})
  const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' } }
  const tools = [{ name: 'get_weather', description: 'Weather of a place', input_schema: { type: 'object' } }]
  expect(await count({ tools })).toBeGreaterThan(bare)
  expect(await count({ system: 'You are terse.' })).toBeGreaterThan(bare)
  expect(
    await count({ messages: [...messages, { role: 'assistant', content: [{ type: 'thinking', thinking: 'hm hm hm', signature: 'x' }] }] }),
  ).toBeGreaterThan(bare)
  expect(await count({ messages: [{ role: 'user', content: [image] }] })).toBeGreaterThan(1000)
  expect(await count({ messages: [{ role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content: [image] }] }] })).toBeGreaterThan(1000)
  const refusals = [
    await app.call('POST', path, { model: 'nope', messages }),
    await app.call('POST', path, { model: 'claude-test', messages }),
    await app.call('POST', path, { model: 'test-model' }),
    await app.call('POST', path, { model: 'test-model', messages }, { token: null }),
  ]
  expect(refusals.map(({ status, json }) => [status, json.type, json.error.code])).toEqual([
    [404, 'error', 'model_not_found'],
    [401, 'error', 'byok_required'],
    [400, 'error', 'bad_request'],
    [401, 'error', 'invalid_api_key'],
  ])
  const limited = await app.newKey({ rpm: 1 })
  await app.call('POST', path, { model: 'test-model', messages }, { token: limited.key })
  expect((await app.call('POST', path, { model: 'test-model', messages }, { token: limited.key })).status).toBe(429)
})

test('case 89 all requests of Claude Code to a gateway work: models, messages with ?beta=true, token counts', async () => {
  const models = await app.call('GET', '/v1/models?limit=1000')
  expect(models.json.data.map(({ id }: { id: string }) => id)).toContain('claude-sonnet-4-5')
  const beta = { 'anthropic-beta': 'claude-code-20250219,interleaved-thinking-2025-05-14', 'anthropic-version': '2023-06-01', 'x-api-key': app.key }
  const body = {
    model: 'test-model',
    max_tokens: 32,
    system: [{ type: 'text', text: 'x-anthropic-billing-header: cc_version=2' }],
    messages,
    stream: true,
    metadata: { user_id: '{"device_id":"x"}' },
  }
  const turn = await app.call('POST', '/v1/messages?beta=true', body, { token: null, headers: beta })
  expect([turn.status, turn.text.includes('event: message_stop')]).toEqual([200, true])
  expect((await app.call('POST', `${path}?beta=true`, body, { token: null, headers: beta })).status).toBe(200)
})

test('a heavy prompt with a number that a double cannot hold reaches the provider with the same digits, and is written in turns of its organisation', async () => {
  const { claude } = app.others
  claude.script({ body: { input_tokens: 12 } })
  const text = '1234567890123456a '.repeat(80_000)
  const body = `{"model":"claude-test","top_k":9007199254740993,"messages":[{"role":"user","content":"${text}"}]}`
  const turns = vi.spyOn(HeavyTurns.prototype, 'run')
  const counted = await app.call('POST', path, body, { ...own(), headers: { ...own().headers, 'content-type': 'application/json' } })
  expect([counted.status, counted.json]).toEqual([200, { input_tokens: 12 }])
  expect(claude.requests.at(-1)?.raw.toString() === body).toBe(true)
  // Five pieces of the restored body, beside the turns of the parser.
  expect(turns.mock.calls.length).toBeGreaterThan(5)
  turns.mockRestore()
})
