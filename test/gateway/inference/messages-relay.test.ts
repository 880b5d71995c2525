import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { statement } from '../../../src/platform/db/db.ts'
import { startApp, type TestApp } from '../../harness/app.ts'
import type { UpstreamServer } from '../../harness/upstream-server.ts'

let app: TestApp
let claude: UpstreamServer
let owner: string

beforeAll(async () => {
  app = await startApp({ dialects: true })
  claude = app.others.claude
  owner = await app.signIn()
})
afterAll(() => app.stop())
beforeEach(() => claude.reset())

const messages = [{ role: 'user', content: 'Hello' }]
const body = { model: 'claude-test', max_tokens: 64, messages }
const ownToken = 'Bearer sk-ant-oat01-own-subscription'
const forwarding = { token: null, headers: {} as Record<string, string> }
const withOwn = (headers: Record<string, string> = {}) => ({
  ...forwarding,
  headers: { 'x-br-api-key': app.key, authorization: ownToken, 'content-type': 'application/json', ...headers },
})

async function withSavedKey<T>(key: string, run: () => Promise<T>): Promise<T> {
  const refused = { status: 401, body: { type: 'error', error: { type: 'authentication_error', message: 'invalid x-api-key' } } }
  claude.script(({ headers, path }) =>
    headers['x-api-key'] === key ? (path.includes('/models') ? { body: { data: [{ id: 'claude-test', type: 'model' }] } } : {}) : refused,
  )
  expect(await app.call('PUT', '/me/byok/claude', { key }, { cookie: owner })).toMatchObject({ status: 200 })
  claude.reset()
  try {
    return await run()
  } finally {
    await app.call('DELETE', '/me/byok/claude', undefined, { cookie: owner })
  }
}

test('MSG-01 case 28 a claude call is relayed byte for byte in both directions', async () => {
  const sent = `{ "model":"claude-test",\n "max_tokens": 6.4e1, "messages":[{"role":"user","content":[{"type":"text","text":"\\u00e9 ✓ \\u2028","cache_control":{"type":"ephemeral"}}]}], "anything": 1.0, "context_management": {"edits": []} }`
  const reply = `{"id":"msg_1","type":"message",  "role":"assistant","model":"claude-test","content":[{"type":"text","text":"\\u00e9"}],"stop_reason":"end_turn","usage":{"input_tokens":3,"output_tokens":2}}`
  claude.script({ body: reply, headers: { 'content-type': 'application/json' } })
  const got = await app.call('POST', '/v1/messages', sent, withOwn())
  expect(got.status).toBe(200)
  expect(got.text).toBe(reply)
  expect(claude.requests[0]?.raw.toString()).toBe(sent)
})

test('MSG-05 MSG-13 case 25 case 30 the forwarded Authorization, version, betas and query reach the provider unchanged', async () => {
  const got = await app.call(
    'POST',
    '/v1/messages?beta=true',
    body,
    withOwn({ 'anthropic-version': '2024-10-22', 'anthropic-beta': 'a-2025-01-01,unknown-2030-01-01' }),
  )
  expect(got.status).toBe(200)
  const [request] = claude.requests
  expect(request?.path).toBe('/v1/messages?beta=true')
  expect(request?.headers).toMatchObject({ authorization: ownToken, 'anthropic-version': '2024-10-22', 'anthropic-beta': 'a-2025-01-01,unknown-2030-01-01' })
  expect(request?.headers['x-api-key']).toBeUndefined()
  expect(JSON.stringify(request?.headers)).not.toContain(app.key)
  expect(request?.headers['x-br-api-key']).toBeUndefined()
})

test('MSG-12 a missing version header becomes 2023-06-01', async () => {
  await app.call('POST', '/v1/messages', body, withOwn())
  expect(claude.requests[0]?.headers['anthropic-version']).toBe('2023-06-01')
})

test('MSG-09 when the gateway key is in x-br-api-key, the provider key in x-api-key is forwarded and the gateway key is not', async () => {
  const got = await app.call('POST', '/v1/messages', body, { token: null, headers: { 'x-br-api-key': app.key, 'x-api-key': 'sk-ant-api03-own' } })
  expect(got.status).toBe(200)
  expect(claude.requests[0]?.headers['x-api-key']).toBe('sk-ant-api03-own')
  expect(JSON.stringify(claude.requests[0]?.headers)).not.toContain(app.key)
})

test('a provider credential in Authorization is forwarded when the gateway key is in x-api-key', async () => {
  const got = await app.call('POST', '/v1/messages', body, { token: null, headers: { 'x-api-key': app.key, authorization: ownToken } })
  expect(got.status).toBe(200)
  expect(claude.requests[0]?.headers.authorization).toBe(ownToken)
  expect(claude.requests[0]?.headers['x-api-key']).toBeUndefined()
})

test('MSG-11 CHAT-30 without a saved or forwarded key, claude-* is 401 byok_required, on messages and on chat', async () => {
  for (const model of ['claude-test', 'claude-not-yet-listed-9']) {
    const got = await app.call('POST', '/v1/messages', { ...body, model })
    expect([got.status, got.json.type, got.json.error.code, got.json.error.type]).toEqual([401, 'error', 'byok_required', 'authentication_error'])
    const chat = await app.call('POST', '/v1/chat/completions', { model, messages })
    expect([chat.status, chat.json.error.code]).toEqual([401, 'byok_required'])
  }
  expect(claude.requests).toHaveLength(0)
})

test('MSG-14 a claude stream is relayed byte for byte, and no [DONE] is added', async () => {
  const events = [
    'event: message_start\ndata: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-test","content":[],"stop_reason":null,"usage":{"input_tokens":11,"cache_read_input_tokens":4,"output_tokens":1}}}\n\n',
    'event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}\n\n',
    'event: ping\ndata: {"type": "ping"}\n\n',
    'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Namaste"}}\n\n',
    'event: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\n',
    'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}\n\n',
    'event: message_stop\ndata: {"type":"message_stop"}\n\n',
  ]
  claude.script({ rawStream: events })
  const got = await app.call('POST', '/v1/messages', { ...body, stream: true }, withOwn())
  expect(got.headers.get('content-type')).toContain('text/event-stream')
  expect(got.text).toBe(events.join(''))
  expect(await usageOf('claude-test')).toMatchObject({ prompt: 15, completion: 9, cached: 4, estimated: false })
})

test("MSG-23 a claude call is recorded from the provider's usage and costs nothing", async () => {
  claude.script({ usage: { input_tokens: 100, cache_read_input_tokens: 40, cache_creation_input_tokens: 10, output_tokens: 20 } })
  const got = await app.call('POST', '/v1/messages', body, withOwn())
  expect(got.headers.get('x-br-cost-inr')).toBe('0')
  const last = await usageOf('claude-test')
  expect(last).toMatchObject({ kind: 'messages', prompt: 150, completion: 20, cached: 40, byok: true, cost: 0 })
  expect(last?.value).toBeGreaterThan(0)
})

test("MSG-22 case 46 a provider's refusal is relayed with its status, body and headers", async () => {
  const told = '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_up"}'
  for (const status of [400, 401, 403, 404, 413, 429, 500, 529]) {
    claude.script({
      status,
      body: told,
      headers: {
        'content-type': 'application/json',
        'retry-after': '17',
        'request-id': 'req_up',
        'anthropic-ratelimit-unified-status': 'rejected',
        'set-cookie': 'a=b',
      },
    })
    const got = await app.call('POST', '/v1/messages', { ...body, stream: status === 529 }, withOwn())
    expect([got.status, got.text]).toEqual([status, told])
    expect(got.headers.get('retry-after')).toBe('17')
    expect(got.headers.get('anthropic-ratelimit-unified-status')).toBe('rejected')
    expect(got.headers.get('set-cookie')).toBeNull()
    expect(got.headers.get('x-br-provider')).toBe('claude')
  }
  claude.script({ status: 502, body: '<html>Bad gateway</html>', headers: { 'content-type': 'text/html' } })
  const html = await app.call('POST', '/v1/messages', body, withOwn())
  expect([html.status, html.text, html.headers.get('content-type')]).toEqual([502, '<html>Bad gateway</html>', 'text/html'])
})

test('MSG-25 whole replies and streams have the header x-br-provider', async () => {
  for (const stream of [false, true]) {
    expect((await app.call('POST', '/v1/messages', { ...body, stream }, withOwn())).headers.get('x-br-provider')).toBe('claude')
    expect((await app.call('POST', '/v1/messages', { ...body, stream, model: 'test-model' })).headers.get('x-br-provider')).toBe('alpha')
  }
})

test('ROUTE-53 router fields on a claude call are obeyed and removed, and all other bytes are unchanged', async () => {
  const sent = (more: string) =>
    `{"data_policy":"india_only" ,"model":"claude-test", ${more}"max_tokens":  5,"messages":[{"role":"user","content":"data_policy \\"x\\""}]}`
  const refused = await app.call('POST', '/v1/messages', sent(''), withOwn())
  expect([refused.status, refused.json.error.code]).toEqual([422, 'no_route'])
  const excluded = await app.call('POST', '/v1/messages', { ...body, exclude: ['claude'] }, withOwn())
  expect(excluded.status).toBe(422)
  const pinned = await app.call('POST', '/v1/messages', { ...body, provider: 'alpha' }, withOwn())
  expect(pinned.status).toBe(400)
  expect(claude.requests).toHaveLength(0)
  const passed = await app.call('POST', '/v1/messages', sent('"optimize":"latency", ').replace('"india_only"', 'null'), withOwn())
  expect(passed.status).toBe(200)
  expect(claude.requests[0]?.raw.toString()).toBe('{"model":"claude-test","max_tokens":  5,"messages":[{"role":"user","content":"data_policy \\"x\\""}]}')
})

test('MSG-08 a call with only a provider key is 401, without a database look-up', async () => {
  for (const headers of [{ 'x-api-key': 'sk-ant-api03-own' }, { authorization: ownToken }, {}] as Record<string, string>[]) {
    const got = await app.call('POST', '/v1/messages', body, { token: null, headers })
    expect([got.status, got.json.type, got.json.error.code]).toEqual([401, 'error', 'invalid_api_key'])
  }
  expect(claude.requests).toHaveLength(0)
  expect(app.logLines.join('')).not.toContain('sk-ant')
})

test('MSG-04 MSG-06 MSG-07 MSG-10 the gateway key is read from the first of three headers that has one, and is never forwarded', async () => {
  const [first, second] = [await app.newKey(), await app.newKey()]
  const translated = { ...body, model: 'test-model' }
  const cases: [Record<string, string>, number][] = [
    [{ 'x-br-api-key': first.key }, first.keyId],
    [{ authorization: `Bearer ${second.key}` }, second.keyId],
    [{ 'x-api-key': first.key }, first.keyId],
    [{ 'x-br-api-key': first.key, authorization: `Bearer ${second.key}` }, first.keyId],
    [{ authorization: `Bearer ${second.key}`, 'x-api-key': first.key }, second.keyId],
    [{ 'x-br-api-key': second.key, authorization: ownToken, 'x-api-key': first.key }, second.keyId],
  ]
  for (const [headers, keyId] of cases) {
    app.alpha.reset()
    expect((await app.call('POST', '/v1/messages', translated, { token: null, headers })).status).toBe(200)
    expect((await usageOf('test-model'))?.keyId).toBe(keyId)
    expect(JSON.stringify(app.alpha.requests[0]?.headers)).not.toMatch(/br-|sk-ant/)
    expect(app.alpha.requests[0]?.headers.authorization).toBe('Bearer alpha-platform-secret')
  }
})

test('an invalid gateway key is 401, and no other header is tried', async () => {
  const bad = `br-${'x'.repeat(32)}`
  for (const headers of [
    { authorization: `Bearer ${bad}`, 'x-api-key': app.key },
    { 'x-br-api-key': bad, authorization: `Bearer ${app.key}` },
  ] as Record<string, string>[]) {
    const got = await app.call('POST', '/v1/messages', body, { token: null, headers })
    expect([got.status, got.json.error.code]).toEqual([401, 'invalid_api_key'])
  }
  // On every other endpoint, only Authorization is read.
  expect((await app.call('POST', '/v1/chat/completions', { model: 'test-model', messages }, { token: null, headers: { 'x-api-key': app.key } })).status).toBe(
    401,
  )
})

test('MSG-24 an agent token works as the bearer credential', async () => {
  const { token } = await app.newAgent('messenger')
  const got = await app.call('POST', '/v1/messages', { ...body, model: 'test-model' }, { token })
  expect(got.status).toBe(200)
  // The token is also not forwarded when another header has the key.
  await app.call('POST', '/v1/messages', body, { token: null, headers: { 'x-br-api-key': app.key, authorization: `Bearer ${token}` } })
  expect(claude.requests).toHaveLength(0)
})

test('MSG-19 a call without max_tokens is relayed to claude, and is 400 for a model that needs translation', async () => {
  const { max_tokens: _none, ...without } = body
  claude.script({ status: 400, body: { type: 'error', error: { type: 'invalid_request_error', message: 'max_tokens: Field required' } } })
  const relayed = await app.call('POST', '/v1/messages', without, withOwn())
  expect([relayed.status, relayed.json.error.message]).toEqual([400, 'max_tokens: Field required'])
  app.alpha.reset()
  const translated = await app.call('POST', '/v1/messages', { ...without, model: 'test-model' })
  expect([translated.status, translated.json.type, translated.json.error.code]).toEqual([400, 'error', 'bad_request'])
  expect(translated.json.error.message).toContain('max_tokens')
  expect(app.alpha.requests).toHaveLength(0)
})

test('the forwarded credential is used before a saved key, and after a 429 the saved key is tried if the request allows it', async () => {
  await withSavedKey('sk-ant-saved-key-1', async () => {
    await app.call('POST', '/v1/messages', body)
    expect(claude.requests[0]?.headers['x-api-key']).toBe('sk-ant-saved-key-1')
    claude.reset()
    claude.script({ status: 429, body: { type: 'error', error: { type: 'rate_limit_error', message: 'limit' } } })
    expect((await app.call('POST', '/v1/messages', body, withOwn())).status).toBe(429)
    expect(claude.requests.map(({ headers }) => headers['x-api-key'] ?? headers.authorization)).toEqual([ownToken])
    claude.reset()
    claude.script([{ status: 429, body: { type: 'error', error: { type: 'rate_limit_error', message: 'limit' } } }, {}])
    expect((await app.call('POST', '/v1/messages', body, withOwn({ 'x-br-overflow': 'byok' }))).status).toBe(200)
    expect(claude.requests.map(({ headers }) => headers['x-api-key'] ?? headers.authorization)).toEqual([ownToken, 'sk-ant-saved-key-1'])
    claude.reset()
    claude.script({ status: 500, body: { type: 'error', error: { type: 'api_error', message: 'no' } } })
    expect((await app.call('POST', '/v1/messages', body, withOwn({ 'x-br-overflow': 'byok' }))).status).toBe(500)
    expect(claude.requests).toHaveLength(1)
  })
  expect((await app.call('POST', '/v1/messages', body, withOwn({ 'x-br-overflow': 'perhaps' }))).status).toBe(400)
})

test('case 26 a forwarded credential never reaches another provider', async () => {
  app.alpha.reset()
  await app.call('POST', '/v1/messages', { ...body, model: 'test-model' }, withOwn({ 'x-api-key': 'sk-ant-api03-own' }))
  await app.call('POST', '/v1/messages', { ...body, model: 'anthropic-model' }, withOwn())
  expect(JSON.stringify(app.alpha.requests.map(({ headers }) => headers))).not.toContain('sk-ant')
  expect(claude.requests[0]?.headers.authorization).toBeUndefined()
  expect(claude.requests[0]?.headers['x-api-key']).toBe('claude-platform-secret')
  expect(app.logLines.join('')).not.toContain('sk-ant')
  expect(await app.dump()).not.toContain('sk-ant')
})

test("tools that the provider runs and charges for are sent with the caller's credential, but not with a platform key", async () => {
  const tools = [{ type: 'web_search_20250305', name: 'web_search' }]
  expect((await app.call('POST', '/v1/messages', { ...body, tools }, withOwn())).status).toBe(200)
  claude.reset()
  const refused = await app.call('POST', '/v1/messages', { ...body, model: 'anthropic-model', tools })
  expect([refused.status, refused.json.error.message]).toEqual([400, expect.stringContaining('web_search_20250305')])
  expect(claude.requests).toHaveLength(0)
  expect((await app.call('POST', '/v1/messages', { ...body, model: 'anthropic-model', tools: [{ type: 'bash_20250124', name: 'bash' }] })).status).toBe(200)
})

test('case 29 MSG-20 every error of these endpoints has the messages format and the fields of the gateway’s envelope', async () => {
  const limited = await app.newKey({ rpm: 1 })
  const errors = [
    await app.call('POST', '/v1/messages', body, { token: 'br-wrong' }),
    await app.call('POST', '/v1/messages', '{', {}),
    await app.call('POST', '/v1/messages', { ...body, model: 'nope' }),
    await app.call('GET', '/v1/messages'),
    await app.call('POST', '/v1/messages', `"${'x'.repeat(33 * 1024 * 1024)}"`),
    (await app.call('POST', '/v1/messages', { ...body, model: 'test-model' }, { token: limited.key })) &&
      (await app.call('POST', '/v1/messages', body, { token: limited.key })),
  ]
  expect(errors.map(({ status, json }) => [status, json.type, json.error.type, json.error.code])).toEqual([
    [401, 'error', 'authentication_error', 'invalid_api_key'],
    [400, 'error', 'invalid_request_error', 'bad_request'],
    [404, 'error', 'not_found_error', 'model_not_found'],
    [405, 'error', 'invalid_request_error', 'method_not_allowed'],
    [413, 'error', 'request_too_large', 'payload_too_large'],
    [429, 'error', 'rate_limit_error', 'rate_limit_exceeded'],
  ])
  expect(errors.every(({ json }) => typeof json.error.message === 'string' && json.error.message !== '')).toBe(true)
})

test('MSG-21 an unknown model is 404 model_not_found', async () => {
  const got = await app.call('POST', '/v1/messages', { ...body, model: 'no-such-model' })
  expect([got.status, got.json.error.code, got.json.error.type]).toEqual([404, 'model_not_found', 'not_found_error'])
})

test('a claude stream that breaks off ends with an error event and without message_stop', async () => {
  claude.script({ breakAfterChunks: 2 })
  const got = await app.call('POST', '/v1/messages', { ...body, stream: true }, withOwn())
  expect(got.text).toContain('event: error\ndata: {"type":"error","error":{"type":"api_error"')
  expect(got.text).not.toContain('message_stop')
  expect(got.text.match(/event: error/g)).toHaveLength(1)
  const last = await usageOf('claude-test')
  expect(last).toMatchObject({ prompt: 12, estimated: true, outcome: 'upstream_broke' })
  expect(last?.completion).toBeGreaterThan(1)
})

interface UsageRow {
  readonly kind: string
  readonly keyId: number
  readonly prompt: number
  readonly completion: number
  readonly cached: number
  readonly estimated: boolean
  readonly outcome: string
  readonly byok: boolean
  readonly value: number
  readonly cost: number
}

const usageRows = statement<[model: string], UsageRow>(
  'test.messages_usage',
  `select kind as "kind", key_id as "keyId", prompt_tokens::int as "prompt", completion_tokens::int as "completion", cached_tokens::int as "cached",
     estimated as "estimated", outcome as "outcome", byok as "byok", value_uinr::int as "value", cost_uinr::int as "cost"
   from usage_events where model = $1::text order by id`,
)

/** Returns the usage row of the last call of that model. */
async function usageOf(model: string): Promise<UsageRow | undefined> {
  await app.gateway.app.limits.flushNow()
  return (await app.db.many(usageRows, model)).at(-1)
}
