import { randomBytes } from 'node:crypto'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { statement } from '../../../src/platform/db/db.ts'
import { makeSealer } from '../../../src/platform/security/secrets.ts'
import { defaultOperatorFile, startApp, type TestApp, until } from '../../harness/app.ts'
import { type RecordedRequest, startUpstream, type UpstreamServer } from '../../harness/upstream-server.ts'

const reseal = statement<[orgId: number, providerId: string, sealed: string]>(
  'test.reseal_provider_key',
  `update provider_keys set sealed = $3::text where org_id = $1::int and provider_id = $2::text`,
)

const secret = 'gm-0123456789abcdefTAIL'
const otherSecret = 'gm-another9876543210SECOND'
const list = { data: [{ id: 'gamma-large' }, { id: 'gamma-small' }, { id: 'with space' }, { id: 'x'.repeat(201) }, { id: 7 }] }

/** Adds the providers gamma and delta without a platform key. delta lists its models without a key. */
const operatorFile = (upstream: UpstreamServer) => (urls: { alpha: string; beta: string; indus: string }) => {
  const file = defaultOperatorFile(urls)
  const route = { provider: 'gamma', upstream_model: 'gamma-large', input_inr_per_mtok: 1000, output_inr_per_mtok: 4000, source: 'test', as_of: '2026-01-01' }
  return {
    providers: [
      ...file.providers,
      { id: 'gamma', name: 'Gamma', base_url: upstream.url, residency: 'global', key_shape: '^gm-' },
      { id: 'delta', name: 'Delta', base_url: upstream.url, residency: 'global', key_check_path: 'key' },
      { id: 'closed', base_url: upstream.url, byok: false },
      { id: 'open', base_url: upstream.url, key_optional: true },
    ],
    models: [...file.models, { id: 'gamma-chat', kind: 'chat', context_length: 100_000, routes: [route] }],
  }
}

describe('own keys at providers', () => {
  let app: TestApp
  let upstream: UpstreamServer
  let owner: string
  let admin: string
  let member: string

  beforeAll(async () => {
    upstream = await startUpstream()
    app = await startApp({ operatorFile: operatorFile(upstream) })
    owner = await app.signIn()
    admin = (await app.newMember('admin')).cookie
    member = (await app.newMember('member')).cookie
  })
  afterAll(async () => {
    await app.stop()
    await upstream.close()
  })
  afterEach(async () => {
    upstream.reset()
    for (const provider of ['gamma', 'delta']) await app.call('DELETE', `/me/byok/${provider}`, undefined, { cookie: owner })
  })

  const put = (provider: string, body: object, cookie = owner) => app.call('PUT', `/me/byok/${provider}`, body, { cookie })
  const saved = async () => (await app.call('GET', '/me/byok', undefined, { cookie: member })).json.keys
  const answer = (body: unknown, status = 200) => upstream.script(() => ({ status, body }))

  test('BYOK-01 every member sees the providers that accept keys and the saved keys, masked', async () => {
    answer(list)
    await put('gamma', { key: secret, label: 'Team key', always_use: true })
    for (const cookie of [owner, admin, member]) {
      const { status, json } = await app.call('GET', '/me/byok', undefined, { cookie })
      expect(status).toBe(200)
      expect(json.providers).toContainEqual({ id: 'gamma', name: 'Gamma', residency: 'global', key_shape: '^gm-' })
      const ids = json.providers.map((provider: { id: string }) => provider.id)
      expect(ids).toEqual(expect.arrayContaining(['alpha', 'openai', 'anthropic', 'google']))
      expect(ids).not.toContain('closed')
      expect(ids).not.toContain('open')
      expect(json.keys).toEqual([
        {
          provider: 'gamma',
          label: 'Team key',
          mask: 'gm-0…TAIL',
          always_use: true,
          verified: true,
          verified_at: expect.stringMatching(/^\d{4}-.*Z$/),
          models: 2,
          created_at: expect.stringMatching(/^\d{4}-.*Z$/),
        },
      ])
    }
  })

  test('BYOK-02 SHAPE-08 when the owner saves a key, it is tested at the provider first, and its models are listed', async () => {
    answer(list)
    const reply = await put('gamma', { key: `${secret}\n`, label: 'L' })
    expect(reply.status).toBe(200)
    expect(reply.json).toEqual({ ok: true, provider: 'gamma', label: 'L', mask: 'gm-0…TAIL', always_use: false, verified: true, models_discovered: 2 })
    expect(upstream.requests.map(({ method, path, headers }) => [method, path, headers.authorization])).toEqual([['GET', '/v1/models', `Bearer ${secret}`]])
    const models = await app.call('GET', '/me/byok/gamma/models', undefined, { cookie: member })
    expect(models.json).toEqual({ provider: 'gamma', models: ['gamma/gamma-large', 'gamma/gamma-small'] })
  })

  test('a save without a key changes label and always_use and calls no provider; omitted values do not change', async () => {
    expect((await put('gamma', { label: 'too early' })).json.error.code).toBe('bad_request')
    answer(list)
    await put('gamma', { key: secret, label: 'first', always_use: true })
    upstream.requests.length = 0
    expect((await put('gamma', { label: 'second' })).json).toMatchObject({ label: 'second', always_use: true, mask: 'gm-0…TAIL', models_discovered: 2 })
    expect((await put('gamma', { always_use: false, label: null })).json).toMatchObject({ label: null, always_use: false })
    expect((await put('gamma', {})).json.error.code).toBe('bad_request')
    expect(upstream.requests).toEqual([])
    await put('gamma', { label: 'kept', always_use: true })
    expect((await put('gamma', { key: otherSecret })).json).toMatchObject({ label: 'kept', always_use: true, mask: 'gm-a…COND' })
  })

  test('BYOK-03 PERM-04 only the owner saves, tests and removes keys; admins and members get 403 forbidden, and no provider is called', async () => {
    answer(list)
    await put('gamma', { key: secret })
    upstream.requests.length = 0
    for (const cookie of [admin, member])
      for (const [method, path, body] of [
        ['PUT', '/me/byok/gamma', { key: otherSecret }],
        ['PUT', '/me/byok/nowhere', { key: 7 }],
        ['POST', '/me/byok/gamma/test', {}],
        ['DELETE', '/me/byok/gamma', undefined],
      ] as const) {
        const reply = await app.call(method, path, body, { cookie })
        expect([reply.status, reply.json.error.code], `${method} ${path}`).toEqual([403, 'forbidden'])
      }
    expect(upstream.requests).toEqual([])
    expect((await saved())[0].mask).toBe('gm-0…TAIL')
    expect((await app.call('POST', '/me/byok/gamma/test', {}, { cookie: owner })).status).toBe(200)
    expect((await app.call('DELETE', '/me/byok/gamma', undefined, { cookie: owner })).json).toEqual({ ok: true, provider: 'gamma' })
  })

  test('BYOK-04 an unknown provider, and a provider that accepts no keys of callers, is 404 unknown_provider', async () => {
    for (const provider of ['nowhere', 'closed', 'open', 'a%00b', 'GAMMA', 'x'.repeat(300)])
      for (const [method, path, body] of [
        ['PUT', '', { key: secret }],
        ['POST', '/test', {}],
        ['GET', '/models', undefined],
        ['DELETE', '', undefined],
      ] as const) {
        const reply = await app.call(method, `/me/byok/${provider}${path}`, body, { cookie: owner })
        expect([reply.status, reply.json.error.code], `${method} ${provider}${path}`).toEqual([404, 'unknown_provider'])
      }
    expect((await put('nowhere', { key: 7 })).json.error.code).toBe('bad_request')
  })

  test('BYOK-05 a key of the wrong shape is 400 bad_key and is sent nowhere', async () => {
    for (const key of ['sk-not-of-gamma', '', '   ', 'gm-with space', 'gm-é', `gm-${'x'.repeat(1000)}`, 'gm-a\r\nx-evil: 1']) {
      const reply = await put('gamma', { key })
      expect([reply.status, reply.json.error.code], JSON.stringify(key)).toEqual([400, 'bad_key'])
      if (key.length > 4) expect(reply.text).not.toContain(key)
    }
    expect((await put('openai', { key: secret })).json.error.code).toBe('bad_key')
    expect(upstream.requests).toEqual([])
    expect(await saved()).toEqual([])
  })

  test('BYOK-06 a key that the provider refuses is 400 bad_key, and the previous key stays', async () => {
    answer(list)
    await put('gamma', { key: secret })
    for (const [status, body] of [
      [401, { error: { message: `no such key ${otherSecret}` } }],
      [403, 'forbidden'],
      [400, { error: { message: 'API key not valid. Please pass a valid API key.', status: 'INVALID_ARGUMENT' } }],
    ] as const) {
      upstream.reset()
      answer(body, status)
      const reply = await put('gamma', { key: otherSecret, label: 'new' })
      expect([reply.status, reply.json.error.code]).toEqual([400, 'bad_key'])
      expect(reply.text).not.toContain(otherSecret)
    }
    expect(await saved()).toEqual([expect.objectContaining({ mask: 'gm-0…TAIL', label: null })])
    upstream.reset()
    await chat()
    expect(upstream.requests.at(-1)?.headers.authorization).toBe(`Bearer ${secret}`)
  })

  test('BYOK-07 a provider that cannot be reached is 400 unavailable, and nothing is saved', async () => {
    for (const script of [
      { status: 500, body: `broken ${secret}` },
      { status: 429 },
      { reset: true },
      { body: 'no list' },
      { status: 302, headers: { location: '/x' }, body: '' },
    ]) {
      upstream.reset()
      upstream.script(() => script)
      const reply = await put('gamma', { key: secret })
      expect([reply.status, reply.json.error.code], JSON.stringify(script)).toEqual([400, 'unavailable'])
      expect(reply.text).not.toContain(secret)
    }
    expect(await saved()).toEqual([])
  })

  test('BYOK-09 SHAPE-09 a test of the saved key returns ok, rejected or unreachable; after ok, the stored list of models is new', async () => {
    const run = async () => (await app.call('POST', '/me/byok/gamma/test', undefined, { cookie: owner })).json
    expect((await run()).error.code).toBe('not_found')
    answer(list)
    await put('gamma', { key: secret })
    upstream.reset()
    answer({ data: [{ id: 'gamma-new' }] })
    expect(await run()).toEqual({ status: 'ok' })
    expect((await app.call('GET', '/me/byok/gamma/models', undefined, { cookie: owner })).json.models).toEqual(['gamma/gamma-new'])
    upstream.reset()
    answer({}, 401)
    expect(await run()).toEqual({ status: 'rejected' })
    upstream.reset()
    answer({}, 503)
    expect(await run()).toEqual({ status: 'unreachable' })
    expect((await saved())[0]).toMatchObject({ mask: 'gm-0…TAIL', models: 1, verified: true })
  })

  test('BYOK-10 without a saved key, the models of a provider are 404 not_found', async () => {
    const reply = await app.call('GET', '/me/byok/gamma/models', undefined, { cookie: member })
    expect([reply.status, reply.json.error.code]).toEqual([404, 'not_found'])
    const gone = await app.call('DELETE', '/me/byok/gamma', undefined, { cookie: owner })
    expect([gone.status, gone.json.error.code]).toEqual([404, 'not_found'])
  })

  test('BYOK-12 BYOK-15 no reply, log line or table contains a saved key', async () => {
    answer(list)
    const texts = [(await put('gamma', { key: secret, label: 'L' })).text]
    for (const [method, path] of [
      ['GET', '/me/byok'],
      ['GET', '/me/byok/gamma/models'],
      ['POST', '/me/byok/gamma/test'],
    ] as const)
      texts.push((await app.call(method, path, undefined, { cookie: owner })).text)
    texts.push((await put('gamma', { label: 'M' })).text, app.logLines.join('\n'))
    const dump = await app.dump()
    expect(dump).toContain('gm-0…TAIL')
    expect(dump).toMatch(/gamma.*v1\.[0-9a-f]{8}\./)
    for (const text of [...texts, dump]) {
      expect(text).not.toContain(secret)
      expect(text).not.toContain(secret.slice(4, -4))
      expect(text).not.toContain(Buffer.from(secret).toString('base64').slice(0, 20))
      expect(text).not.toContain(Buffer.from(secret).toString('hex'))
    }
  })

  const chat = (key = app.key) => app.call('POST', '/v1/chat/completions', { model: 'gamma-chat', messages: [{ role: 'user', content: 'hi' }] }, { token: key })

  const totals = async (token: string) => {
    await app.gateway.app.limits.flushNow()
    return (await app.call('GET', '/v1/usage', undefined, { token })).json.totals
  }

  test('BYOK-13 a call on a saved key is recorded with its value and counts in budgets, and nothing is debited', async () => {
    const { key, keyId } = await app.newKey({ budgetInr: 100 })
    expect((await chat(key)).json.error.code).toBe('no_route')
    answer(list)
    await put('gamma', { key: secret })
    upstream.reset()
    const before = await totals(key)
    const reply = await chat(key)
    expect(reply.status).toBe(200)
    expect(reply.headers.get('x-br-provider')).toBe('gamma')
    expect(upstream.requests.map(({ path, headers }) => [path, headers.authorization])).toEqual([['/v1/chat/completions', `Bearer ${secret}`]])
    // 12 tokens at ₹1,000 and 5 at ₹4,000 per million.
    const after = await totals(key)
    expect(after.requests - before.requests).toBe(1)
    expect(after.value_inr - before.value_inr).toBeCloseTo(0.032, 6)
    expect([after.cost_inr, after.cost_uinr]).toEqual([before.cost_inr, before.cost_uinr])
    const budgets = await app.call('GET', '/v1/me/budgets', undefined, { token: key })
    expect(budgets.json.budgets).toContainEqual(expect.objectContaining({ scope: 'key', id: String(keyId), spent_inr: 0.032 }))
    await app.setBudget('key', keyId, 0.001)
    expect([(await chat(key)).status, (await chat(key)).json.error?.code]).toEqual([429, 'budget_exceeded'])
  })

  test('no further call uses a removed key, and a changed key is used immediately', async () => {
    answer(list)
    await put('gamma', { key: secret })
    upstream.reset()
    expect((await chat()).status).toBe(200)
    answer(list)
    await put('gamma', { key: otherSecret })
    upstream.reset()
    expect((await chat()).status).toBe(200)
    expect(upstream.requests.at(-1)?.headers.authorization).toBe(`Bearer ${otherSecret}`)
    await app.call('DELETE', '/me/byok/gamma', undefined, { cookie: owner })
    expect((await chat()).json.error.code).toBe('no_route')
  })

  test('another organisation cannot see, change or use the key', async () => {
    answer(list)
    await put('gamma', { key: secret })
    const other = await app.otherOrg('Other Keys')
    const cookie = await app.signIn(other.userId, other.orgId)
    expect((await app.call('GET', '/me/byok', undefined, { cookie })).json.keys).toEqual([])
    for (const [method, path] of [
      ['GET', '/me/byok/gamma/models'],
      ['POST', '/me/byok/gamma/test'],
      ['DELETE', '/me/byok/gamma'],
    ] as const)
      expect((await app.call(method, path, undefined, { cookie })).json.error.code).toBe('not_found')
    expect((await chat(other.key)).json.error.code).toBe('no_route')
    expect(await saved()).toHaveLength(1)
  })

  test('when the list of models needs no key, the key is tested with a call that needs one', async () => {
    upstream.script(request => (request.path === '/v1/key' ? { status: 401, body: {} } : { body: list }))
    expect((await put('delta', { key: 'anything-goes' })).json.error.code).toBe('bad_key')
    upstream.reset()
    upstream.script(request => (request.path === '/v1/key' ? { body: { data: {} } } : { body: list }))
    expect((await put('delta', { key: 'anything-goes' })).json).toMatchObject({ verified: true, models_discovered: 2 })
    expect(upstream.requests.map(request => request.path)).toEqual(['/v1/key', '/v1/models'])
  })

  test('when a provider has no list of models, the key is tested with an empty call, which verifies it only if a wrong key would be detected', async () => {
    const refuses = (request: RecordedRequest) =>
      request.method === 'GET' ? { status: 404, body: {} } : { status: request.headers.authorization === `Bearer ${secret}` ? 422 : 401, body: {} }
    upstream.script(refuses)
    expect((await put('gamma', { key: otherSecret })).json.error.code).toBe('bad_key')
    expect((await put('gamma', { key: secret })).json).toMatchObject({ verified: true, models_discovered: 0 })
    upstream.reset()
    upstream.script(request => ({ status: request.method === 'GET' ? 404 : 400, body: {} }))
    expect((await put('gamma', { key: secret })).json).toMatchObject({ verified: false })
    expect((await saved())[0]).toMatchObject({ verified: false, verified_at: null })
    upstream.reset()
    answer({}, 404)
    expect((await put('gamma', { key: secret })).json.error.code).toBe('unavailable')
  })

  test('a key that cannot be opened is left out and logged, and the other keys work', async () => {
    answer(list)
    await put('gamma', { key: secret })
    await put('delta', { key: 'delta-key-123456' })
    await app.db.exec(reseal, app.orgId, 'delta', makeSealer(randomBytes(32)).seal('delta-key-123456', `provider_key:${app.orgId}:delta`))
    await put('gamma', { label: 'reload' })
    upstream.reset()
    expect((await chat()).status).toBe(200)
    await until(() => app.logLines.some(line => line.includes('provider_key_unreadable') && line.includes('"provider":"delta"')))
    expect((await app.call('POST', '/me/byok/delta/test', undefined, { cookie: owner })).json.error.code).toBe('not_found')
    expect((await app.call('DELETE', '/me/byok/delta', undefined, { cookie: owner })).status).toBe(200)
  })

  test('a sealed key that was moved to another row cannot be opened', async () => {
    answer(list)
    await put('gamma', { key: secret })
    const dump = await app.dump()
    const sealed = /v1\.[0-9a-f]{8}\.[\w-]+/.exec(dump.split('\n').find(line => line.includes('gm-0…TAIL')) ?? '')?.[0] ?? ''
    await put('delta', { key: 'delta-key-123456' })
    await app.db.exec(reseal, app.orgId, 'delta', sealed)
    expect((await app.call('POST', '/me/byok/delta/test', undefined, { cookie: owner })).json.error.code).toBe('not_found')
  })

  test('an agent token reads with the rights of a member and changes nothing', async () => {
    const { token } = await app.newAgent('byok-agent')
    expect((await app.call('GET', '/me/byok', undefined, { token })).status).toBe(200)
    expect((await app.call('DELETE', '/me/byok/gamma', undefined, { token })).status).toBe(403)
    expect((await app.call('GET', '/me/byok')).json.error.code).toBe('no_session')
  })
})

test('BYOK-08 every own-key route is 503 byok_disabled while BYOK is off; the role is checked before this, and the body is not checked', async () => {
  const app = await startApp({ env: { BYOK: 'off' } })
  try {
    const owner = await app.signIn()
    const member = (await app.newMember('member')).cookie
    for (const [method, path, body] of [
      ['GET', '/me/byok', undefined],
      ['PUT', '/me/byok/openai', { key: 7 }],
      ['PUT', '/me/byok/nowhere', 'not json'],
      ['POST', '/me/byok/openai/test', {}],
      ['GET', '/me/byok/openai/models', undefined],
      ['DELETE', '/me/byok/openai', undefined],
    ] as const) {
      const reply = await app.call(method, path, body, { cookie: owner })
      expect([reply.status, reply.json.error.code], `${method} ${path}`).toEqual([503, 'byok_disabled'])
      if (method === 'GET') continue
      expect((await app.call(method, path, body, { cookie: member })).status, `${method} ${path}`).toBe(403)
    }
  } finally {
    await app.stop()
  }
})
