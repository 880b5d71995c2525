import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { defaultOperatorFile, startApp, type TestApp, type TestReply } from '../../harness/app.ts'
import { type OwnServer, startOwnServer } from '../byok/own-server.ts'

const hello = [{ role: 'user', content: 'Hello there' }]
const savedKey = 'sk-saved-by-the-organisation-0001'
const minuteMs = 60_000

describe('own keys and own servers of an organisation', () => {
  let app: TestApp
  let server: OwnServer
  let owner: string
  beforeAll(async () => {
    server = await startOwnServer()
    server.behave()
    app = await startApp({
      env: { OUTBOUND_ALLOW: server.hostPort },
      operatorFile: urls => {
        const file = defaultOperatorFile(urls)
        const route = {
          provider: 'alpha',
          upstream_model: 'gated-upstream',
          input_inr_per_mtok: 1,
          output_inr_per_mtok: 4,
          source: 'test',
          as_of: '2026-01-01',
        }
        return { ...file, models: [...file.models, { id: 'gated-model', kind: 'chat', gated: true, routes: [route] }] }
      },
    })
    owner = await app.signIn()
  })
  afterAll(async () => {
    await app.stop()
    await server.close()
  })
  afterEach(async () => {
    for (const id of ['alpha', 'beta']) await manage('DELETE', `/me/byok/${id}`)
    for (const upstream of all()) upstream.reset()
  })

  const all = () => [app.alpha, app.beta, app.indus]
  const manage = (method: string, path: string, body?: object, cookie = owner) => app.call(method, path, body, { cookie })
  /** Saves a key at a provider that lists these models for it. */
  async function saveKey(id: 'alpha' | 'beta', alwaysUse: boolean, models: readonly string[] = []): Promise<void> {
    app[id].script(() => ({ body: { data: models.map(model => ({ id: model })) } }))
    expect((await manage('PUT', `/me/byok/${id}`, { key: savedKey, always_use: alwaysUse })).status).toBe(200)
    app[id].reset()
  }
  const chat = (body: object, token = app.key) => app.call('POST', '/v1/chat/completions', { messages: hello, model: 'test-model', ...body }, { token })
  const outcome = (reply: TestReply) => [reply.status, reply.json.error?.code ?? reply.headers.get('x-br-provider')]
  const served = async (body: object = {}, token = app.key) => outcome(await chat(body, token))
  const keysOf = (id: 'alpha' | 'beta') => app[id].requests.map(request => request.headers.authorization)
  const totals = async () => (await app.call('GET', '/v1/usage')).json.totals

  test('CHAT-36 a model that the provider lists for a saved key runs on that key as provider/model-id, and nothing is debited', async () => {
    await saveKey('beta', false, ['deep/er-model:7b', 'beta-upstream'])
    const before = await totals()
    const reply = await chat({ model: 'beta/deep/er-model:7b' })
    expect([reply.status, reply.json.model, reply.headers.get('x-br-provider')]).toEqual([200, 'beta/deep/er-model:7b', 'beta'])
    expect(keysOf('beta')).toEqual([`Bearer ${savedKey}`])
    expect(app.beta.requests[0]?.json?.['model']).toBe('deep/er-model:7b')
    const between = await totals()
    // A model that the catalog does not know has no price. A model that it knows at that provider counts with its price, but is not debited either.
    expect([between.requests, between.value_inr, between.cost_uinr]).toEqual([before.requests + 1, before.value_inr, before.cost_uinr])
    await served({ model: 'beta/beta-upstream' })
    const after = await totals()
    expect(after.value_inr).toBeGreaterThan(between.value_inr)
    expect(after.cost_uinr).toBe(before.cost_uinr)
    expect(await served({ model: 'beta/unlisted' })).toEqual([404, 'model_not_found'])
    expect(await served({ model: 'alpha/any' })).toEqual([400, 'no_route'])
    expect(await served({ model: 'beta/deep/er-model:7b' }, (await app.otherOrg('Strangers')).key)).toEqual([400, 'no_route'])
  })

  test('EDGE-12 exclude removes a model on an own key by its listed id, and the preview says so', async () => {
    await saveKey('beta', true, ['meta/llama-3', 'beta-upstream', 'own/other'])
    const listed = (await app.call('GET', '/v1/models')).json.data.map((model: { id: string }) => model.id)
    expect(listed).toContain('beta/meta/llama-3')
    const excluded = { model: 'beta/meta/llama-3', exclude: ['beta/meta/llama-3'] }
    expect(await served(excluded)).toEqual([422, 'no_route'])
    // The other steps of a chain remain.
    expect(await served({ ...excluded, fallbacks: ['beta/meta/llama-3', 'beta/own/other', 'alpha-only'] })).toEqual([200, 'beta'])
    expect(app.beta.requests.map(({ json }) => json?.['model'])).toEqual(['own/other'])
    const preview = await app.call('POST', '/me/route/preview', { ...excluded, fallbacks: ['beta/meta/llama-3', 'alpha-only'], messages: hello })
    expect(preview.status, preview.text).toBe(200)
    expect(preview.json.candidates).toContainEqual({ model: 'beta/meta/llama-3', provider: 'beta', eligible: false, why: 'excluded by the request' })
    // The catalog knows this model at this provider. Its name there and its catalog id both exclude it, on both routes to it.
    app.beta.reset()
    for (const exclude of [['beta/test-model'], ['beta/beta-upstream']]) {
      expect(await served({ model: 'beta/beta-upstream', exclude })).toEqual([422, 'no_route'])
      expect(await served({ model: 'test-model', exclude })).toEqual([200, 'alpha'])
    }
    // The same holds for an own key in the request, and for a preset.
    expect(await served({ model: 'beta/meta/llama-3', upstream_key: 'sk-with-the-call', exclude: ['beta/meta/llama-3'] })).toEqual([422, 'no_route'])
    expect(app.beta.requests).toEqual([])
  })

  test("ROUTE-55 a saved key that is always used comes before the platform's key, and after its failure the platform's routes are tried", async () => {
    await saveKey('beta', true)
    const before = await totals()
    expect(await served({ model: 'test-model' })).toEqual([200, 'beta'])
    expect(keysOf('beta')).toEqual([`Bearer ${savedKey}`])
    expect((await totals()).cost_uinr).toBe(before.cost_uinr)
    app.beta.script([{ status: 401, body: { error: { message: 'expired' } } }])
    expect(await served({ model: 'test-model' })).toEqual([200, 'alpha'])
    app.beta.reset()
    app.beta.script([{ status: 429 }])
    expect(await served({ model: 'test-model', provider: 'beta' })).toEqual([200, 'beta'])
    expect(keysOf('beta')).toEqual([`Bearer ${savedKey}`, 'Bearer beta-platform-secret'])
  })

  test("a saved key that is not always used comes after the platform's route, and serves where the platform has no route", async () => {
    await saveKey('alpha', false)
    expect(await served({ model: 'alpha-only' })).toEqual([200, 'alpha'])
    expect(await served({ model: 'byok-model' })).toEqual([200, 'alpha'])
    expect(keysOf('alpha')).toEqual(['Bearer alpha-platform-secret', `Bearer ${savedKey}`])
  })

  test('a quarantined route is skipped, gives 400 no_route when it was the last, and is served on a saved key', async () => {
    const { health } = app.gateway.app
    const now = Date.now()
    for (const id of ['alpha/test-model', 'alpha/alpha-only']) health.withhold(id, now + minuteMs)
    try {
      expect((await app.call('GET', '/v1/models/alpha-only')).json.routes).toMatchObject([{ provider: 'alpha', maintenance: true, available: true }])
      expect(await served({ model: 'test-model' })).toEqual([200, 'beta'])
      expect(await served({ model: 'alpha-only' })).toEqual([400, 'no_route'])
      expect(app.alpha.requests).toEqual([])
      await saveKey('alpha', false)
      expect(await served({ model: 'alpha-only' })).toEqual([200, 'alpha'])
      expect(keysOf('alpha')).toEqual([`Bearer ${savedKey}`])
    } finally {
      for (const id of ['alpha/test-model', 'alpha/alpha-only']) health.withhold(id, now)
    }
  })

  test('ROUTE-59 a model that needs an own key gets 400 no_route without one', async () => {
    expect(await served({ model: 'byok-model' })).toEqual([400, 'no_route'])
    expect(await served({ model: 'test-model', fallbacks: ['byok-model', 'alpha-only'] })).toEqual([200, 'alpha'])
    expect(keysOf('alpha')).toEqual(['Bearer alpha-platform-secret'])
    await saveKey('alpha', false)
    expect(await served({ model: 'byok-model' })).toEqual([200, 'alpha'])
  })

  test('BYOK-11 after the owner removes a saved key, its models have no route', async () => {
    await saveKey('alpha', true, ['mine'])
    expect(await served({ model: 'alpha/mine' })).toEqual([200, 'alpha'])
    const admin = (await app.newMember('admin')).cookie
    expect((await manage('DELETE', '/me/byok/alpha', undefined, admin)).status).toBe(403)
    expect(await served({ model: 'byok-model' })).toEqual([200, 'alpha'])
    expect((await manage('DELETE', '/me/byok/alpha')).status).toBe(200)
    expect((await manage('GET', '/me/byok')).json.keys).toEqual([])
    expect(await served({ model: 'alpha/mine' })).toEqual([400, 'no_route'])
    expect(await served({ model: 'byok-model' })).toEqual([400, 'no_route'])
    app.alpha.reset()
    expect(await served({ model: 'alpha-only' })).toEqual([200, 'alpha'])
    expect(keysOf('alpha')).toEqual(['Bearer alpha-platform-secret'])
  })

  test('CHAIN-06 a step may name an own server of the organisation, but not a server of another organisation', async () => {
    const made = await manage('POST', '/me/endpoints', { name: 'Box', model: 'test-model', base_url: server.url, upstream_model: 'theirs' })
    expect(made.status).toBe(201)
    const { slug } = made.json.endpoint
    const steps = [
      { model: 'test-model', provider: `byoe:${slug}` },
      { model: 'test-model', provider: 'indus' },
    ]
    expect((await manage('PUT', '/me/routing/test-model', { steps })).json.steps).toEqual(steps)
    expect(await served()).toEqual([200, `byoe:${slug}`])
    server.misbehave(() => ({ status: 500 }))
    expect(await served()).toEqual([200, 'indus'])
    server.behave()
    const wrong = await manage('PUT', '/me/routing/test-model', { steps: [{ model: 'test-model', provider: 'byoe:none' }] })
    expect(outcome(wrong)).toEqual([400, 'bad_steps'])
    const other = await app.otherOrg('Onlookers')
    const theirs = await manage('PUT', '/me/routing/test-model', { steps }, await app.signIn(other.userId, other.orgId))
    expect(outcome(theirs)).toEqual([400, 'bad_steps'])
    // A step whose server was deleted is skipped.
    expect((await manage('DELETE', `/me/endpoints/${made.json.endpoint.id}`)).status).toBe(200)
    expect(await served()).toEqual([200, 'indus'])
    await manage('DELETE', '/me/routing/test-model')
  })

  test('ORG-17 a gated model gets 403 model_gated while the organisation has no retention window, and runs as soon as it has one', async () => {
    expect((await manage('PUT', '/me/org/data-retention', { days: 0 })).status).toBe(200)
    expect(await served({ model: 'gated-model' })).toEqual([403, 'model_gated'])
    expect((await app.call('POST', '/me/route/preview', { model: 'gated-model' })).json.error.code).toBe('model_gated')
    await manage('PUT', '/me/org/data-retention', { days: 7 })
    expect(await served({ model: 'gated-model' })).toEqual([200, 'alpha'])
    await manage('PUT', '/me/org/data-retention', { days: 0 })
    expect(await served({ model: 'gated-model' })).toEqual([403, 'model_gated'])
  })

  test('ROUTE-39 upstream_key is never sent to a second provider when the first one fails, not even in a chain', async () => {
    const secret = 'sk-of-the-caller-12345678'
    app.alpha.script(() => ({ status: 500 }))
    for (const body of [
      {},
      { fallbacks: ['alpha-only', { model: 'test-model', provider: 'beta' }, 'global-only'] },
      { optimize: 'price', exclude: ['indus'] },
    ]) {
      expect(await served({ ...body, upstream_key: secret })).toEqual([502, 'all_routes_failed'])
      expect([app.beta.requests.length, app.indus.requests.length]).toEqual([0, 0])
    }
    expect(new Set(keysOf('alpha'))).toEqual(new Set([`Bearer ${secret}`]))
  })

  test("a provider's error that quotes the platform's key or a saved key reaches the caller without the key", async () => {
    for (const isSaved of [false, true]) {
      if (isSaved) await saveKey('alpha', true)
      app.alpha.script(request => ({ status: 400, body: { error: { message: `project of ${request.headers.authorization} is gone`, param: 'key' } } }))
      const reply = await chat({ model: 'alpha-only' })
      expect([reply.status, reply.json.error.param]).toEqual([400, 'key'])
      expect(reply.json.error.message).toBe('project of Bearer [secret] is gone')
    }
  })

  test('upstream_key is in no table, log, error or usage report, for a call, a stream, a failure or a preview', async () => {
    const secret = 'sk-leaky-0123456789-upstream'
    const echo = { status: 400, body: { error: { message: `no such key ${secret}` } } }
    const texts: string[] = []
    app.alpha.script(() => ({ status: 500, body: `crashed with ${secret}` }))
    for (const body of [{ model: 'alpha-only' }, { model: 'alpha/own' }, { model: 'alpha-only', stream: true }])
      texts.push((await chat({ ...body, upstream_key: secret })).text)
    texts.push((await app.call('POST', '/me/route/preview', { model: 'test-model', upstream_key: secret })).text)
    texts.push((await chat({ model: 'nothing', upstream_key: secret })).text)
    app.alpha.reset()
    await chat({ model: 'alpha-only', upstream_key: secret })
    app.alpha.script([echo])
    texts.push((await chat({ model: 'alpha-only', upstream_key: secret })).text)
    await app.gateway.app.limits.flushNow()
    expect(texts.join('\n')).not.toContain(secret)
    expect(app.logLines.join('\n')).not.toContain(secret)
    expect(await app.dump()).not.toContain(secret)
    expect((await app.call('GET', '/v1/usage')).text).not.toContain(secret)
  })

  test("the remaining rate limit of a caller's own key does not count as the platform's", async () => {
    const left = () => app.gateway.app.health.of(app.orgId).measurements('alpha/alpha-only').headroom
    app.alpha.script(() => ({ headers: { 'x-ratelimit-remaining-requests': '1', 'x-ratelimit-limit-requests': '100' } }))
    expect(await served({ model: 'alpha-only', upstream_key: 'sk-somebody-0001' })).toEqual([200, 'alpha'])
    expect(left()).toBeNull()
    expect(await served({ model: 'alpha-only' })).toEqual([200, 'alpha'])
    expect(left()).toBe(0.01)
  })
})
