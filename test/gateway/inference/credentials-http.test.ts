/** On the messages endpoints, a credential goes only to the provider that it is for, and is stored nowhere. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../harness/app.ts'

let app: TestApp

beforeAll(async () => {
  app = await startApp({ dialects: true, env: { CIRCUIT_FAILURES: '1000' } })
})
afterAll(() => app.stop())
beforeEach(() => {
  for (const upstream of [app.alpha, app.beta, app.others.claude]) upstream.reset()
})

const messages = [{ role: 'user', content: 'Hello there' }]
const call = { model: 'claude-test', max_tokens: 16, messages }
const send = (body: object, headers: Record<string, string>, path = '/v1/messages') => app.call('POST', path, body, { token: null, headers })
const sentHeaders = () => JSON.stringify(app.others.claude.requests.map(({ headers }) => headers))

test('a gateway key that is sent in addition to another key, in any form, never reaches the provider', async () => {
  const { key } = app
  const agent = await app.newAgent('forwarder')
  const forms: Record<string, string>[] = [
    { authorization: `Bearer ${key}` },
    { authorization: `Bearer Bearer ${key}` },
    { authorization: `Bearer "${key}"` },
    { authorization: `Basic ${key}` },
    { authorization: `Basic ${Buffer.from(`${key}:`).toString('base64')}` },
    { authorization: `Basic ${Buffer.from(`user:${key}`).toString('base64')}` },
    { authorization: key },
    { authorization: `Bearer sk-own,${key}` },
    { authorization: `Bearer ${agent.token} ${agent.token}` },
    { authorization: `Token token=${agent.token}` },
    { authorization: `Bearer ${key.toUpperCase()}` },
    { 'x-api-key': `Bearer ${key}` },
    { 'x-api-key': `sk-own, ${key}` },
    { 'x-api-key': agent.token },
  ]
  for (const path of ['/v1/messages', '/v1/messages/count_tokens'])
    for (const form of forms) {
      const reply = await send(call, { 'x-br-api-key': key, ...form }, path)
      expect([JSON.stringify(form), reply.status, reply.json.error.code]).toEqual([JSON.stringify(form), 401, 'byok_required'])
    }
  expect(app.others.claude.requests).toEqual([])
  // A key of the provider is passed on, even if it contains the letters of the gateway's prefix.
  for (const own of ['Bearer sk-ant-oat01-abr-br-x', 'Bearer eyJhbGciOiJub25lIn0.e30.x'])
    expect((await send(call, { 'x-br-api-key': key, authorization: own })).status).toBe(200)
  expect((await send(call, { 'x-br-api-key': key, 'x-api-key': 'sk-ant-api03-br_x-br-y' })).status).toBe(200)
  expect(app.others.claude.requests.map(({ headers }) => headers.authorization ?? headers['x-api-key'])).toEqual([
    'Bearer sk-ant-oat01-abr-br-x',
    'Bearer eyJhbGciOiJub25lIn0.e30.x',
    'sk-ant-api03-br_x-br-y',
  ])
})

test('a provider gets no header of the client except versions and betas', async () => {
  const odd = {
    cookie: 'br_session=x',
    'x-forwarded-for': '10.0.0.1',
    'x-br-agent-id': 'peer',
    'x-stainless-os': 'x',
    referer: 'https://a.example',
    'x-api-key': '',
  }
  await send(call, { 'x-br-api-key': app.key, authorization: 'Bearer sk-ant-own-0001', 'anthropic-beta': 'b1', ...odd })
  expect(Object.keys(app.others.claude.requests[0]?.headers ?? {}).sort()).toEqual(
    [
      'accept',
      'accept-encoding',
      'anthropic-beta',
      'anthropic-version',
      'authorization',
      'connection',
      'content-length',
      'content-type',
      'host',
      'user-agent',
    ].sort(),
  )
})

test('when its provider fails, a forwarded credential is not sent to another provider', async () => {
  app.others.claude.script(() => ({ status: 529, body: { type: 'error', error: { type: 'overloaded_error', message: 'busy' } } }))
  const own = 'sk-ant-oat01-only-for-claude'
  const reply = await send(
    { ...call, fallbacks: ['claude-test', 'anthropic-model', 'test-model'] },
    { 'x-br-api-key': app.key, authorization: `Bearer ${own}` },
  )
  expect([reply.status, reply.headers.get('x-br-provider')]).toEqual([200, 'alpha'])
  expect(app.others.claude.requests.map(({ headers }) => [headers.authorization, headers['x-api-key']])).toEqual([
    [`Bearer ${own}`, undefined],
    [undefined, 'claude-platform-secret'],
  ])
  expect(JSON.stringify(app.alpha.requests.map(({ headers }) => headers))).not.toContain(own)
})

test("a token count hides problems of the platform's account, but reports errors of the request", async () => {
  const accountHeaders = {
    'anthropic-organization-id': 'org-platform',
    'anthropic-ratelimit-requests-limit': '50',
    'request-id': 'req_upstream',
    'set-cookie': 'a=b',
  }
  const failures: [number, string, string][] = [
    [401, 'authentication_error', 'invalid x-api-key claude-platform-secret'],
    [402, 'billing_error', 'pay'],
    [403, 'permission_error', 'no'],
    [429, 'rate_limit_error', 'slow down'],
    [400, 'invalid_request_error', 'Your credit balance is too low'],
    [500, 'api_error', 'oh'],
    [302, 'x', 'elsewhere'],
  ]
  const count = (model: string) => app.call('POST', '/v1/messages/count_tokens', { model, messages })
  for (const [status, type, message] of failures) {
    app.others.claude.script({ status, headers: { ...accountHeaders, location: 'http://127.0.0.1/' }, body: { type: 'error', error: { type, message } } })
    const reply = await count('anthropic-model')
    expect([status, reply.status, reply.headers.get('x-br-estimate')]).toEqual([status, 200, 'true'])
    expect(reply.json.input_tokens).toBeGreaterThan(3)
    for (const name of Object.keys(accountHeaders)) expect(reply.headers.get(name), name).toBeNull()
  }
  for (const script of [{ reset: true }, { body: 'no json' }, { body: { input_tokens: 'many' } }]) {
    app.others.claude.script(script)
    expect((await count('anthropic-model')).headers.get('x-br-estimate')).toBe('true')
  }
  app.others.claude.script({
    status: 400,
    headers: accountHeaders,
    body: { type: 'error', error: { type: 'invalid_request_error', message: 'messages: bad, claude-platform-secret' } },
  })
  const refused = await count('anthropic-model')
  expect([refused.status, refused.json.error.message, refused.headers.get('anthropic-organization-id')]).toEqual([400, 'messages: bad, [secret]', null])
  const counted = await count('anthropic-model')
  expect([counted.json, counted.headers.get('x-br-provider')]).toEqual([{ input_tokens: 12 }, 'claude'])
})

test('a token count obeys the policies of the named agent, and is refused for a revoked agent', async () => {
  const agent = await app.newAgent('counter')
  const count = () => app.call('POST', '/v1/messages/count_tokens', { model: 'anthropic-model', messages }, { headers: { 'x-br-agent-id': 'counter' } })
  expect((await count()).status).toBe(200)
  const ruled = await app.call('PATCH', `/v1/me/agents/${agent.id}`, { allowed_models: ['test-model'] })
  expect(ruled.status, ruled.text).toBe(200)
  expect((await count()).json.error.code).toBe('model_not_allowed')
  await app.call('POST', `/v1/me/agents/${agent.id}/revoke`, {})
  const revoked = await count()
  expect([revoked.status, revoked.json.error.code]).toEqual([403, 'agent_revoked'])
})

test('when a refusal quotes the forwarded credential, the shown and stored text leaves the credential out', async () => {
  const cookie = await app.signIn()
  await app.call('PUT', '/me/org/data-retention', { days: 3 }, { cookie })
  const own = 'sk-ant-api03-quoted-by-its-provider'
  for (const status of [400, 401, 429, 500]) {
    app.others.claude.script({ status, body: { type: 'error', error: { type: 'authentication_error', message: `invalid x-api-key: ${own}` } } })
    const reply = await send({ ...call, stream: status === 429 }, { 'x-br-api-key': app.key, 'x-api-key': own })
    expect([reply.status, reply.json.error.message]).toEqual([status, 'invalid x-api-key: [secret]'])
    const kept = await app.gateway.app.contentLog.read(app.orgId, reply.headers.get('x-request-id') ?? '')
    expect(kept?.reply).toContain('[secret]')
    expect(JSON.stringify(kept)).not.toContain(own)
  }
  expect(sentHeaders()).toContain(own)
  expect(app.logLines.join('')).not.toContain(own)
})

test('query parameters named like built-in object members are ordinary parameters', async () => {
  for (const query of ['constructor=1', 'toString=a&toString=b', '__proto__=1', 'hasOwnProperty='])
    expect([query, (await app.call('POST', `/v1/messages?${query}`, { ...call, model: 'anthropic-model' })).status]).toEqual([query, 200])
})
