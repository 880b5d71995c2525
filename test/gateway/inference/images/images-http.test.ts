import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { panelMembers } from '../../../../src/gateway/catalog/image-panel.ts'
import { startApp, type TestApp, type TestReply } from '../../../harness/app.ts'
import { usageRows } from '../../../harness/usage-rows.ts'
import { base64, type ImageProviders, keys, startImageProviders } from './image-providers.ts'

const image = '/v1/images/generations'
const prompt = 'a zebra wearing spectacles-of-jade beside a kiln'

describe('images over HTTP', () => {
  let app: TestApp
  let providers: ImageProviders
  let owner: string
  beforeAll(async () => {
    providers = await startImageProviders()
    app = await startApp({
      env: { ...providers.env, TEST_GANGA_KEY: keys.ganga, IMAGE_POLL_MS: '5', IMAGE_DEADLINE_MS: '2000', CIRCUIT_FAILURES: '1000' },
      operatorFile: () => ({
        providers: [{ id: 'ganga', base_url: `${providers.origin}/ganga/v1`, residency: 'india', api_key_env: 'TEST_GANGA_KEY' }],
        models: [{ id: 'platform-image', kind: 'image', inr_per_image: 3, edits: true, routes: [{ provider: 'ganga' }] }],
      }),
    })
    owner = await app.signIn()
  })
  afterAll(async () => {
    await app.stop()
    await providers.close()
  })
  beforeEach(() => providers.reset())

  const make = (body: object = {}, token?: string): Promise<TestReply> =>
    app.call('POST', image, { prompt, upstream_key: keys.together, ...body }, token === undefined ? {} : { token })
  const codeOf = ({ status, json }: TestReply) => [status, json.error?.code]
  const usage = async () => (await app.call('GET', '/v1/usage')).json.totals
  const spentBy = async (act: () => Promise<unknown>) => {
    const before = await usage()
    await act()
    const after = await usage()
    return {
      requests: after.requests - before.requests,
      cost: after.cost_uinr - before.cost_uinr,
      value: Math.round((after.value_inr - before.value_inr) * 1e6),
    }
  }

  test('IMG-01 a request with only a prompt gets one picture of 1024x1024 by sdxl, as a URL', async () => {
    const reply = await make()
    expect(reply.status).toBe(200)
    expect(reply.json.data).toHaveLength(1)
    expect(reply.json.data[0].url).toMatch(/^https:/)
    expect(providers.of('together').map(({ json }) => json)).toEqual([
      { model: 'stabilityai/stable-diffusion-xl-base-1.0', prompt, n: 1, width: 1024, height: 1024, response_format: 'url' },
    ])
    expect(reply.headers.get('x-br-provider')).toBe('together')
    expect(reply.headers.get('x-br-dropped-params')).toBeNull()
    expect(reply.headers.get('x-br-cost-inr')).toBe('0')
  })

  test('IMG-02 a reply has an integer `created`, and each picture is a URL or base64', async () => {
    for (const response_format of ['url', 'b64_json']) {
      const { json, status } = await make({ n: 3, response_format })
      expect(status).toBe(200)
      expect(Number.isInteger(json.created)).toBe(true)
      expect(json.data).toHaveLength(3)
      for (const one of json.data) expect(typeof one[response_format]).toBe('string')
    }
  })

  test('IMG-03 a prompt that is missing, empty or not text is 400 bad_request', async () => {
    for (const body of [{ prompt: undefined }, { prompt: '' }, { prompt: '  ' }, { prompt: 7 }, { prompt: null }, { prompt: ['a'] }])
      expect(codeOf(await make(body)), JSON.stringify(body)).toEqual([400, 'bad_request'])
    expect((await make({ prompt: '' })).json.error.message).toContain('"prompt"')
    expect(providers.seen).toEqual([])
  })

  test('IMG-04 a request for more than four pictures gets four', async () => {
    for (const n of [5, 40, 1e9]) expect((await make({ n })).json.data).toHaveLength(4)
    expect(providers.of('together').map(({ json }) => json['n'])).toEqual([4, 4, 4])
  })

  test('IMG-03 a prompt of more than 32,000 characters is 400 bad_request that names the bound, and no provider is called', async () => {
    for (const field of ['prompt', 'negative_prompt']) {
      const reply = await make({ [field]: 'a'.repeat(32_001) })
      expect(codeOf(reply)).toEqual([400, 'bad_request'])
      expect(reply.json.error.message).toContain(`"${field}" has 32001 characters; one call may have 32000 at most`)
    }
    expect(providers.of('together')).toEqual([])
    expect((await make({ prompt: 'a'.repeat(32_000) })).status).toBe(200)
  })

  test('IMG-05 a count that is zero, negative, fractional or text is 400 bad_request', async () => {
    for (const n of [0, -1, 1.5, '2', [], true]) expect(codeOf(await make({ n })), JSON.stringify(n)).toEqual([400, 'bad_request'])
    expect(providers.seen).toEqual([])
  })

  test('IMG-06 a size that is not WIDTHxHEIGHT is 400 bad_request', async () => {
    for (const size of ['large', 'auto', '1024', '1024x', '0x10', '10x-1', '1e3x10', '1024X1024', 1024, '100000x1'])
      expect(codeOf(await make({ size })), JSON.stringify(size)).toEqual([400, 'bad_request'])
    expect((await make({ size: '512x256' })).status).toBe(200)
    expect(providers.of('together')[0]?.json).toMatchObject({ width: 512, height: 256 })
  })

  test('IMG-07 a response_format other than url or b64_json is 400 bad_request', async () => {
    for (const response_format of ['png', 'base64', '', 3]) expect(codeOf(await make({ response_format }))).toEqual([400, 'bad_request'])
    expect(providers.seen).toEqual([])
  })

  test('IMG-08 quality and user are sent to a provider that supports them, and named as dropped elsewhere', async () => {
    const paramsList = { quality: 'high', user: 'u-1' }
    const known = await make({ model: 'gpt-image-1', upstream_key: keys.openai, ...paramsList })
    expect(providers.of('openai')[0]?.json).toEqual({ model: 'gpt-image-1', prompt, n: 1, size: '1024x1024', ...paramsList })
    expect(known.headers.get('x-br-dropped-params')).toBeNull()
    const unknown = await make(paramsList)
    expect(unknown.status).toBe(200)
    expect(providers.of('together')[0]?.json).not.toHaveProperty('quality')
    expect(unknown.headers.get('x-br-dropped-params')).toBe('quality,user')
  })

  test('IMG-09 each of the fifteen model ids is listed with its price for an image', async () => {
    const ids = ['sdxl', 'flux-1-schnell', 'flux-1-dev', 'flux-1-pro', 'cogview-4', 'qwen-image', 'sd-3.5-large', 'seedream', 'gemini-image', 'minimax-image']
    for (const id of [...ids, 'step-1x', 'grok-2-image', 'gpt-image-1', 'gpt-image-1-mini', 'dall-e-3']) {
      const { json, status } = await app.call('GET', `/v1/models/${id}`, undefined, { token: null })
      expect([status, json.kind], id).toEqual([200, 'image'])
      expect(json.inrPerImage, id).toBeGreaterThan(0)
    }
  })

  test('IMG-10 without an own key, every listed model is 400 no_route and no provider is called', async () => {
    for (const model of ['sdxl', 'gpt-image-1', 'qwen-image', 'flux-1-pro']) {
      const reply = await make({ model, upstream_key: undefined })
      expect(codeOf(reply)).toEqual([400, 'no_route'])
      expect(reply.json.error.message).toContain('own key')
    }
    expect(providers.seen).toEqual([])
  })

  test('IMG-11 with india_only, every listed model is 422 no_route, even with a key', async () => {
    const { data } = (await app.call('GET', '/v1/models')).json
    const ids = data
      .filter((model: { kind: string; id: string }) => model.kind === 'image' && model.id !== 'platform-image')
      .map(({ id }: { id: string }) => id)
    expect(ids).toHaveLength(16)
    for (const model of ids) {
      expect(codeOf(await make({ model, data_policy: 'india_only' })), model).toEqual([422, 'no_route'])
      expect(codeOf(await make({ model, data_policy: 'india_only', upstream_key: undefined })), model).toEqual([422, 'no_route'])
    }
    expect(providers.seen).toEqual([])
  })

  test('IMG-12 an unknown model or a virtual id is 400 model_not_found', async () => {
    for (const model of ['nope', 'auto', 'best', 'image-sangam:eu']) expect(codeOf(await make({ model })), model).toEqual([400, 'model_not_found'])
    expect(codeOf(await make({ model: '' }))).toEqual([400, 'bad_request'])
    expect(codeOf(await make({ model: 7 }))).toEqual([400, 'bad_request'])
  })

  test("IMG-13 a provider's 200 without a picture becomes a 502 error", async () => {
    for (const body of [
      { created: 1, data: [] },
      { created: 1 },
      { created: 1, data: [{ url: '' }] },
      { created: 1, data: [{}, null, 3] },
      [],
      { data: { url: 'x' } },
    ]) {
      providers.answer(() => ({ body }))
      const reply = await make({ model: 'gpt-image-1', upstream_key: keys.openai })
      expect(codeOf(reply), JSON.stringify(body)).toEqual([502, 'all_routes_failed'])
      expect(reply.json).not.toHaveProperty('data')
    }
  })

  test('a picture on an own key is recorded with its value, but is not charged', async () => {
    const { json: me } = await app.call('PUT', '/me/byok/together', { key: keys.together }, { cookie: owner })
    expect(me.verified).toBe(true)
    // sdxl costs ₹0.30 for an image.
    expect(await spentBy(() => make({ n: 3, upstream_key: undefined }))).toEqual({ requests: 1, cost: 0, value: 900_000 })
    expect((await usageRows(app))[0]).toMatchObject({ model: 'sdxl', kind: 'image', images: 3, byok: true, costUinr: 0n, valueUinr: 900_000n })
    await app.call('DELETE', '/me/byok/together', undefined, { cookie: owner })
  })

  test('IMG-15 fewer pictures than requested are charged as delivered, and more are cut to the requested number', async () => {
    const some = (count: number) => ({ body: { created: 5, data: Array.from({ length: count }, () => ({ b64_json: base64 })) } })
    providers.answer(() => some(2))
    // gpt-image-1 costs ₹4.03 for an image.
    expect(await spentBy(() => make({ model: 'gpt-image-1', upstream_key: keys.openai, n: 4 }))).toEqual({ requests: 1, cost: 0, value: 8_060_000 })
    providers.answer(() => some(3))
    const more = await make({ model: 'gpt-image-1', upstream_key: keys.openai, n: 2 })
    expect(more.json.data).toHaveLength(2)
    // One of three single pictures fails, so two are returned and charged.
    let calls = 0
    providers.answer(() => (++calls === 2 ? { status: 500, body: {} } : undefined))
    const partial = await spentBy(async () => expect((await make({ model: 'dall-e-3', upstream_key: keys.openai, n: 3 })).json.data).toHaveLength(2))
    expect(partial).toEqual({ requests: 1, cost: 0, value: 7_680_000 })
  })

  test('IMG-16 a job that never ends is abandoned at the deadline with 502 all_routes_failed', async () => {
    providers.pendingLooks = Number.POSITIVE_INFINITY
    const reply = await make({ model: 'qwen-image', upstream_key: keys.alibaba })
    expect(codeOf(reply)).toEqual([502, 'all_routes_failed'])
    expect(reply.json.error.message).toContain('alibaba did not finish the image within 2 s')
    expect(reply.headers.get('x-br-provider')).toBe('alibaba')
  })

  test('IMG-17 the picture URL of the provider is returned unchanged and not fetched', async () => {
    const url = `${providers.origin}/openai/v1/private?token=abc%2F&x=1#frag`
    providers.answer(() => ({ body: { created: 1, data: [{ url, revised_prompt: 'r' }] } }))
    const { json } = await make({ model: 'dall-e-3', upstream_key: keys.openai })
    expect(json.data).toEqual([{ url, revised_prompt: 'r' }])
    expect(providers.seen).toHaveLength(1)
  })

  test('IMG-18 a provider that supports only base64 returns base64 for a requested URL, and the field is named as dropped', async () => {
    for (const [model, key] of [
      ['gemini-image', keys.google],
      ['gpt-image-1', keys.openai],
      ['sd-3.5-large', keys.stability],
    ] as const) {
      const reply = await make({ model, upstream_key: key, response_format: 'url' })
      expect(reply.json.data, model).toEqual([{ b64_json: base64 }])
      expect(reply.headers.get('x-br-dropped-params'), model).toBe('response_format')
    }
  })

  test('IMG-19 the prompt is in no log line and no table, for any outcome of the call', async () => {
    providers.answer(({ json }) => (json['n'] === 2 ? { status: 500, body: { error: { message: `cannot draw "${prompt}"` } } } : undefined))
    await make()
    const failed = await make({ n: 2 })
    expect(failed.status).toBe(502)
    expect(failed.text).not.toContain('spectacles')
    providers.answer(({ json }) => ({ status: 400, body: { error: { message: `refused: ${String(json['prompt'])}` } } }))
    expect((await make()).status).toBe(400)
    providers.answer(() => ({ status: 200, body: { base_resp: { status_code: 1000, status_msg: `unknown error for ${prompt}` } } }))
    const inside = await make({ model: 'minimax-image', upstream_key: keys.minimax })
    expect(inside.status).toBe(502)
    await app.gateway.app.limits.flushNow()
    for (const text of [app.logLines.join('\n'), await app.dump()]) {
      expect(text).not.toContain('spectacles')
      expect(text).not.toContain('zebra')
    }
    expect(inside.text).not.toContain('spectacles')
  })

  test('on the platform key the price of an image is held before the provider call and charged, and a strict budget below it refuses', async () => {
    const charged = await spentBy(async () => {
      const reply = await make({ model: 'platform-image', upstream_key: undefined, n: 2 })
      expect([reply.status, reply.headers.get('x-br-cost-inr')]).toEqual([200, '6'])
    })
    expect(charged).toEqual({ requests: 1, cost: 6_000_000, value: 6_000_000 })
    providers.reset()
    const { key, keyId } = await app.newKey()
    await app.gateway.app.limits.budgets.set(app.orgId, 'key', String(keyId), 7_000_000n, { strict: true })
    const mine = (n: number) => app.call('POST', image, { model: 'platform-image', prompt, n }, { token: key })
    // At ₹3 for an image, two fit into ₹7 and three do not.
    expect(codeOf(await mine(3))).toEqual([429, 'budget_exceeded'])
    expect(providers.seen).toEqual([])
    expect((await mine(2)).status).toBe(200)
    expect(codeOf(await mine(1))).toEqual([429, 'budget_exceeded'])
  })

  test('a request for a streamed image is refused with advice', async () => {
    const reply = await make({ stream: true })
    expect(codeOf(reply)).toEqual([400, 'bad_request'])
    expect(reply.json.error.message).toContain('stream')
    expect((await make({ stream: false, partial_images: 0 })).headers.get('x-br-dropped-params')).toBeNull()
    const partial = await make({ partial_images: 3 })
    expect([partial.status, partial.headers.get('x-br-dropped-params')]).toEqual([200, 'partial_images'])
    for (const { json } of providers.seen) expect(json).not.toHaveProperty('partial_images')
  })

  test('router fields are obeyed and never forwarded, and another route serves after a failure', async () => {
    for (const provider of ['together', 'fireworks'] as const)
      expect((await app.call('PUT', `/me/byok/${provider}`, { key: keys[provider] }, { cookie: owner })).status).toBe(200)
    const own = { upstream_key: undefined, model: 'flux-1-dev' }
    expect((await make({ ...own, provider: 'fireworks', optimize: 'latency' })).headers.get('x-br-provider')).toBe('fireworks')
    expect((await make({ ...own, exclude: ['together'] })).headers.get('x-br-provider')).toBe('fireworks')
    expect(codeOf(await make({ ...own, exclude: ['together', 'fireworks'] }))).toEqual([422, 'no_route'])
    for (const { json } of providers.seen) for (const name of ['provider', 'optimize', 'exclude', 'upstream_key']) expect(json).not.toHaveProperty(name)
    providers.answer(({ provider }) => (provider === 'together' ? { status: 503, body: {} } : undefined))
    const over = await make(own)
    expect([over.status, over.headers.get('x-br-provider')]).toEqual([200, 'fireworks'])
    for (const provider of ['together', 'fireworks']) await app.call('DELETE', `/me/byok/${provider}`, undefined, { cookie: owner })
  })

  test("a provider's refusal of the request is passed on, and no other route is tried", async () => {
    providers.answer(() => ({ status: 400, body: { error: { message: 'safety system', type: 'invalid_request_error', code: 'moderation_blocked' } } }))
    const reply = await make({ model: 'gpt-image-1', upstream_key: keys.openai })
    expect(codeOf(reply)).toEqual([400, 'moderation_blocked'])
    expect(providers.seen).toHaveLength(1)
  })

  test('the model list contains the panel and its members', async () => {
    const panel = (await app.call('GET', '/v1/models/brigade/image-sangam')).json
    expect(panel.inrPerImage).toBeCloseTo(0.3 + 0.26 + 2.4)
    expect(panelMembers).toEqual(['flux-1-schnell', 'flux-1-dev', 'sdxl'])
  })
})
