import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { defaultOperatorFile, startApp, type TestApp, until } from '../../harness/app.ts'

const hello = [{ role: 'user', content: 'Hello there' }]

describe('routing over HTTP', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({ env: { CIRCUIT_FAILURES: '3', CIRCUIT_OPEN_MS: '700' } })
    // The regular jobs are stopped, because circuits open repeatedly here and the healing job would withhold the routes.
    await app.gateway.app.jobs.stop()
  })
  afterAll(() => app.stop())
  const all = () => [app.alpha, app.beta, app.indus]
  const closed = async () => (await app.call('GET', '/health')).json.routes.every((route: { available: boolean }) => route.available)
  beforeEach(async () => {
    for (const upstream of all()) upstream.reset()
    await until(closed)
    // A success resets the failures that earlier tests caused.
    for (const provider of ['alpha', 'beta', 'indus']) await chat({ provider })
    for (const upstream of all()) upstream.reset()
  })
  const chat = (body: object = {}) => app.call('POST', '/v1/chat/completions', { model: 'test-model', messages: hello, ...body })
  const served = async (body: object) => (await chat(body)).headers.get('x-br-provider')
  const codeOf = async (body: object) => {
    const reply = await chat(body)
    return [reply.status, reply.json.error?.code]
  }
  const dialed = () => all().map(upstream => upstream.requests.length)

  test('ROUTE-01 ROUTE-02 the cheapest route is tried first, by default and with optimize: price', async () => {
    expect(await served({})).toBe('alpha')
    expect(await served({ optimize: 'price' })).toBe('alpha')
    expect(dialed()).toEqual([2, 0, 0])
  })

  test('ROUTE-08 a route with an open circuit is tried last', async () => {
    app.alpha.script([{ status: 500 }, { status: 500 }, { status: 500 }])
    for (let i = 0; i < 3; i++) expect(await served({})).toBe('beta')
    expect(await served({})).toBe('beta')
    expect(app.alpha.requests).toHaveLength(3)
    app.beta.script([{ status: 500 }])
    app.indus.script([{ status: 500 }])
    expect(await served({})).toBe('alpha')
    // In every optimize mode, even if the route would otherwise be first.
    app.alpha.script([{ status: 500 }, { status: 500 }, { status: 500 }])
    for (let i = 0; i < 3; i++) await chat({ provider: 'alpha' })
    const paramsList = [...['price', 'latency', 'uptime', 'throughput', 'quality', 'auto'].map(optimize => ({ optimize })), { optimize_weights: { price: 1 } }]
    for (const params of paramsList) {
      const { candidates } = (await app.call('POST', '/me/route/preview', { model: 'test-model', messages: hello, ...params })).json
      expect(candidates.map((candidate: { provider: string }) => candidate.provider).at(-1), JSON.stringify(params)).toBe('alpha')
    }
  })

  test('ROUTE-09 ROUTE-18 ROUTE-28 ROUTE-34 an unknown value of a router field is 400 bad_request and never ignored', async () => {
    for (const body of [{ optimize: 'cheap' }, { route: 'worst' }, { data_policy: 'eu_only' }, { exclude: 'alpha' }, { exclude: [7] }])
      expect(await codeOf(body), JSON.stringify(body)).toEqual([400, 'bad_request'])
    expect(dialed()).toEqual([0, 0, 0])
  })

  test('ROUTE-12 ROUTE-14 a malformed weight counts as 0, and an unknown weight is ignored', async () => {
    // A negative price weight would put the most expensive route first.
    for (const weight of [-1, '1', null, {}]) {
      expect(await served({ optimize_weights: { price: weight } }), String(weight)).toBe('alpha')
      expect(await served({ optimize_weights: { price: 1, latency: weight, taste: 3 } }), String(weight)).toBe('alpha')
    }
    // The cheaper route is second in the catalog. It would stay second if the weight counted.
    const second = JSON.stringify({ model: 'global-only', messages: hello, optimize_weights: 0 }).replace('weights":0', 'weights":{"price":1,"latency":1e999}')
    const cheaper = await app.call('POST', '/v1/chat/completions', second, { headers: { 'content-type': 'application/json' } })
    expect([cheaper.status, cheaper.headers.get('x-br-provider')]).toEqual([200, 'murky'])
    // Each provider has answered, so another route could be first by latency, uptime or throughput alone.
    for (const weights of ['{"price":-1e999}', '{"price":1,"latency":1e999}', '{"price":1,"throughput":1e999,"uptime":-1e999}']) {
      const endless = JSON.stringify({ model: 'test-model', messages: hello, optimize_weights: 0 }).replace(
        '"optimize_weights":0',
        `"optimize_weights":${weights}`,
      )
      const reply = await app.call('POST', '/v1/chat/completions', endless, { headers: { 'content-type': 'application/json' } })
      expect([reply.status, reply.headers.get('x-br-provider')], weights).toEqual([200, 'alpha'])
    }
  })

  test('ROUTE-19 ROUTE-20 with a pinned provider, no other provider is called, and when it fails the answer is 502', async () => {
    expect(await served({ provider: 'beta' })).toBe('beta')
    app.beta.script([{ status: 500, body: 'beta is ill' }])
    const reply = await chat({ provider: 'beta' })
    expect([reply.status, reply.json.error.code]).toEqual([502, 'all_routes_failed'])
    expect(dialed()).toEqual([0, 2, 0])
  })

  test('ROUTE-21 ROUTE-22 ERR-09 a pinned provider that is unknown or does not serve the model is 400 no_route, without a call or usage row', async () => {
    const before = (await app.call('GET', '/v1/usage')).json.totals.requests
    expect(await codeOf({ model: 'alpha-only', provider: 'beta' })).toEqual([400, 'no_route'])
    expect(await codeOf({ provider: 'nobody' })).toEqual([400, 'no_route'])
    expect(dialed()).toEqual([0, 0, 0])
    expect((await app.call('GET', '/v1/usage')).json.totals.requests).toBe(before)
  })

  test('ROUTE-23 a pinned provider is called even if its circuit is open', async () => {
    app.beta.script(Array.from({ length: 3 }, () => ({ status: 500 })))
    for (let i = 0; i < 3; i++) await chat({ provider: 'beta' })
    expect((await app.call('GET', '/health')).json.routes).toContainEqual({ model: 'test-model', provider: 'beta', available: false, circuit: 'open' })
    expect(await served({ provider: 'beta' })).toBe('beta')
  })

  test('ROUTE-26 ROUTE-29 with india_only, only Indian routes are called, even if they fail', async () => {
    expect(await served({ data_policy: 'india_only' })).toBe('indus')
    app.indus.script([{ status: 500 }])
    expect(await codeOf({ data_policy: 'india_only' })).toEqual([502, 'all_routes_failed'])
    expect(dialed()).toEqual([0, 0, 2])
  })

  test('ROUTE-27 ROUTE-30 india_only without a proven Indian route is 422 no_route, and no provider is called', async () => {
    expect(await codeOf({ model: 'global-only', data_policy: 'india_only' })).toEqual([422, 'no_route'])
    expect(dialed()).toEqual([0, 0, 0])
  })

  test('ROUTE-31 ROUTE-32 ROUTE-35 exclude removes a provider for all models or for one, and an unknown id has no effect', async () => {
    expect(await served({ exclude: ['alpha'] })).toBe('beta')
    expect(await served({ exclude: ['alpha/test-model'] })).toBe('beta')
    expect(await served({ model: 'alpha-only', exclude: ['alpha/test-model'] })).toBe('alpha')
    expect(await served({ exclude: ['nobody'] })).toBe('alpha')
  })

  test('ROUTE-33 an exclude that leaves no route is 422 no_route', async () => {
    expect(await codeOf({ exclude: ['alpha', 'beta', 'indus'] })).toEqual([422, 'no_route'])
  })

  test('ROUTE-37 with upstream_key as the credential, the value is recorded and nothing is charged', async () => {
    const before = (await app.call('GET', '/v1/usage')).json.totals
    expect((await chat({ provider: 'alpha', upstream_key: 'sk-mine-12345678' })).status).toBe(200)
    expect(app.alpha.requests[0]?.headers.authorization).toBe('Bearer sk-mine-12345678')
    const after = (await app.call('GET', '/v1/usage')).json.totals
    expect(after.value_inr).toBeGreaterThan(before.value_inr)
    expect(after.cost_uinr).toBe(before.cost_uinr)
  })

  test('upstream_key is in no log line, no table and no error', async () => {
    app.alpha.script([{ status: 500, body: 'bad key sk-mine-12345678' }])
    const reply = await chat({ provider: 'alpha', upstream_key: 'sk-mine-12345678' })
    expect(reply.status).toBe(502)
    expect(reply.text).not.toContain('sk-mine')
    await app.gateway.app.limits.flushNow()
    expect(app.logLines.join('\n')).not.toContain('sk-mine')
    expect(await app.dump()).not.toContain('sk-mine')
  })

  test('ROUTE-44 ERR-08 a 400, 404 or 422 of the provider is relayed to the caller and ends the chain', async () => {
    for (const status of [400, 404, 422]) {
      app.alpha.reset()
      app.alpha.script([{ status, body: { error: { message: 'bad tool schema', type: null, code: null, param: 'tools' } } }])
      const reply = await chat()
      expect(reply.status).toBe(status)
      expect(reply.json.error).toEqual({ message: 'bad tool schema', type: expect.any(String), code: 'upstream_client_error', param: 'tools' })
      expect(reply.headers.get('x-br-provider')).toBe('alpha')
    }
    expect(app.beta.requests).toHaveLength(0)
    app.alpha.script([{ status: 400, body: 'plain words' }])
    expect((await chat()).json.error.message).toContain('plain words')
  })

  test('ROUTE-45 a refused platform key causes failover, and counts as a failure of the route', async () => {
    for (const status of [401, 403, 401]) {
      app.alpha.script([{ status, body: { error: { message: 'invalid key' } } }])
      expect(await served({})).toBe('beta')
    }
    expect(await closed()).toBe(false)
    expect(app.alpha.requests).toHaveLength(3)
    expect(await served({})).toBe('beta')
    expect(app.alpha.requests).toHaveLength(3)
  })

  test('ROUTE-46 HDR-09 a billing refusal of a provider causes failover, and is 503 without retry-after when no route is left', async () => {
    const refusal = { status: 402, body: { error: { message: 'insufficient balance', code: 'insufficient_balance' } } }
    app.alpha.script([refusal])
    expect(await served({})).toBe('beta')
    for (const upstream of all()) upstream.script([refusal])
    const reply = await chat()
    expect([reply.status, reply.json.error.code]).toEqual([503, 'provider_unavailable_billing'])
    expect(reply.headers.get('retry-after')).toBeNull()
  })

  test("ROUTE-47 a provider's 429 causes failover, is 502 with retry-after on the only route, and opens a circuit only when repeated", async () => {
    const limited = { status: 429, headers: { 'retry-after': '17' }, body: { error: { message: 'slow down' } } }
    app.alpha.script([limited])
    expect(await served({})).toBe('beta')
    app.alpha.reset()
    app.alpha.script([limited])
    const reply = await chat({ model: 'alpha-only' })
    expect([reply.status, reply.json.error.code, reply.headers.get('retry-after')]).toEqual([502, 'all_routes_failed', '17'])
    // The limit is three failures. A single 429 between successes never counts.
    for (let i = 0; i < 4; i++) {
      app.alpha.script([limited, {}])
      await chat({ provider: 'alpha' })
      await chat({ provider: 'alpha' })
    }
    expect(await closed()).toBe(true)
    app.alpha.script([limited, limited, limited, limited])
    for (let i = 0; i < 4; i++) {
      expect(await closed()).toBe(true)
      await chat({ provider: 'alpha' })
    }
    expect(await closed()).toBe(false)
  })

  test('ROUTE-48 HDR-04 when all routes fail, the message has the last error without secrets, and x-br-provider names the last provider', async () => {
    app.alpha.script([{ reset: true }])
    app.beta.script([{ status: 503, body: 'overloaded' }])
    app.indus.script([{ status: 500, body: { error: { message: 'crashed with key indus-platform-secret' } } }])
    const reply = await chat()
    expect([reply.status, reply.json.error.code]).toEqual([502, 'all_routes_failed'])
    expect(reply.json.error.message).toContain('crashed')
    expect(reply.text).not.toContain('platform-secret')
    expect(reply.headers.get('x-br-provider')).toBe('indus')
  })

  test('CAT-06 LIFE-02 an open circuit shows as available: false on that route only, closes by itself, and opens again after a failing probe', async () => {
    const flags = async () => {
      const { routes } = (await app.call('GET', '/v1/models/test-model')).json
      return Object.fromEntries(routes.map((route: { provider: string; available: boolean }) => [route.provider, route.available]))
    }
    app.alpha.script(Array.from({ length: 4 }, () => ({ status: 500 })))
    for (let i = 0; i < 3; i++) await chat()
    expect(await flags()).toEqual({ alpha: false, beta: true, indus: true })
    await until(async () => (await flags())['alpha'] === true)
    expect(await served({})).toBe('beta')
    expect((await flags())['alpha']).toBe(false)
    await until(async () => (await flags())['alpha'] === true)
    expect(await served({})).toBe('alpha')
    expect((await flags())['alpha']).toBe(true)
  })

  test('LIFE-03 a success in between resets the count of failures', async () => {
    const bad = { status: 500 }
    app.alpha.script([bad, bad, {}, bad, bad])
    for (let i = 0; i < 5; i++) await chat()
    expect(await closed()).toBe(true)
  })

  test('streams that break after the first chunk open the circuit, and an error frame inside a stream also counts as a failure', async () => {
    app.alpha.script([{ breakAfterChunks: 1 }, { errorFrameAfterChunks: 1 }, { breakAfterChunks: 2 }])
    for (let i = 0; i < 3; i++) expect((await chat({ stream: true })).status).toBe(200)
    expect((await app.call('GET', '/health')).json.routes).toContainEqual({ model: 'test-model', provider: 'alpha', available: false, circuit: 'open' })
  })

  test('LIFE-04 errors of the caller open no circuit', async () => {
    app.alpha.script(Array.from({ length: 6 }, () => ({ status: 400, body: { error: { message: 'no' } } })))
    for (let i = 0; i < 6; i++) expect((await chat()).status).toBe(400)
    expect(await closed()).toBe(true)
  })
})

describe('POST /v1/embeddings', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({
      operatorFile: urls => ({
        ...defaultOperatorFile(urls),
        providers: [...defaultOperatorFile(urls).providers, { id: 'vllm', base_url: urls.indus, auth: 'none' }],
      }),
    })
  })
  afterAll(() => app.stop())
  beforeEach(() => {
    for (const upstream of [app.alpha, app.beta, app.indus]) upstream.reset()
  })
  const embed = (body: object = {}) => app.call('POST', '/v1/embeddings', { model: 'test-embed', input: ['one', 'two'], ...body })

  test('EMB-01 the reply is a list of vectors in input order with usage', async () => {
    const reply = await embed()
    expect(reply.status).toBe(200)
    expect(reply.json.object).toBe('list')
    expect(reply.json.data.map((item: { index: number }) => item.index)).toEqual([0, 1])
    for (const item of reply.json.data) expect(Array.isArray(item.embedding)).toBe(true)
    expect(reply.json.usage.prompt_tokens).toBeGreaterThan(0)
  })

  test("EMB-02 the platform's Indian model is listed with 1024 dimensions, runs on a route in India, and its vectors arrive completely", async () => {
    const entry = (await app.call('GET', '/v1/models/bge-m3')).json
    expect([entry.residency, entry.dimensions]).toEqual(['india', 1024])
    const vector = Array.from({ length: 1024 }, (_, i) => i / 1024)
    app.indus.script({
      body: { object: 'list', model: 'bge-m3', data: [{ object: 'embedding', index: 0, embedding: vector }], usage: { prompt_tokens: 2, total_tokens: 2 } },
    })
    const reply = await embed({ model: 'bge-m3', input: ['namaste'], data_policy: 'india_only' })
    expect(reply.headers.get('x-br-provider')).toBe('vllm')
    expect(reply.json.data[0].embedding).toEqual(vector)
  })

  test('EMB-03 an input that is a string is sent unchanged, and the reply has one vector and usage', async () => {
    const vector = Array.from({ length: 1024 }, (_, at) => at / 2048)
    app.alpha.script(() => ({
      body: { object: 'list', model: 'x', data: [{ object: 'embedding', index: 0, embedding: vector }], usage: { prompt_tokens: 3, total_tokens: 3 } },
    }))
    const reply = await embed({ input: 'one \u0928\u092e' })
    expect(app.alpha.requests.map(({ json }) => json)).toEqual([{ model: 'alpha-upstream', input: 'one \u0928\u092e' }])
    expect([reply.status, reply.json.object, reply.json.data, reply.json.usage]).toMatchObject([
      200,
      'list',
      [{ object: 'embedding', index: 0, embedding: vector }],
      { prompt_tokens: 3, total_tokens: 3 },
    ])
    const list = await embed({ input: ['one \u0928\u092e'] })
    expect(list.json.data).toEqual(reply.json.data)
  })

  test('EMB-04 an empty list and items that are not strings are 400 bad_request', async () => {
    for (const input of [[], [1], [null], {}, undefined])
      expect([(await embed({ input })).status, (await embed({ input })).json.error.code], JSON.stringify(input)).toEqual([400, 'bad_request'])
  })

  test('EMB-05 EMB-09 an unknown model is 404 model_not_found, and a chat model is 400 no_route', async () => {
    const unknown = await embed({ model: 'nothing' })
    expect([unknown.status, unknown.json.error.code]).toEqual([404, 'model_not_found'])
    const wrong = await embed({ model: 'test-model' })
    expect([wrong.status, wrong.json.error.code]).toEqual([400, 'no_route'])
  })

  test('EMB-06 EMB-07 ROUTE-51 router fields are obeyed and removed', async () => {
    const reply = await embed({ data_policy: 'india_only', optimize: 'price', dimensions: 1024 })
    expect(reply.headers.get('x-br-provider')).toBe('indus')
    const sent = JSON.parse(app.indus.requests[0]?.raw.toString() ?? '{}')
    expect(Object.keys(sent).sort()).toEqual(['dimensions', 'input', 'model'])
    const others = { optimize_weights: { latency: 1 }, route: 'best', exclude: ['beta'], fallbacks: ['test-embed'], image_optimize: 'off', image_max_edge: 100 }
    expect((await embed({ ...others, provider: 'indus', upstream_key: 'sk-of-the-caller' })).status).toBe(200)
    const [, second] = app.indus.requests
    expect(Object.keys(second?.json ?? {}).sort()).toEqual(['input', 'model'])
    expect(second?.headers.authorization).toBe('Bearer sk-of-the-caller')
    expect((await embed({ data_policy: 'elsewhere' })).status).toBe(400)
  })

  test('EMB-08 only input tokens are recorded and charged', async () => {
    const before = (await app.call('GET', '/v1/usage')).json.totals
    await embed()
    const after = (await app.call('GET', '/v1/usage')).json.totals
    expect(after.completion_tokens).toBe(before.completion_tokens)
    expect(after.prompt_tokens).toBeGreaterThan(before.prompt_tokens)
    expect(after.cost_uinr).toBeGreaterThan(before.cost_uinr)
  })

  test('EMB-10 encoding_format and dimensions are forwarded', async () => {
    await embed({ encoding_format: 'float', dimensions: 256 })
    expect(JSON.parse(app.alpha.requests[0]?.raw.toString() ?? '{}')).toMatchObject({ encoding_format: 'float', dimensions: 256 })
  })
})
