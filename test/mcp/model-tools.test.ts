/** models_list, route_preview, embed and image_generate, called by real clients of both eras. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { defaultOperatorFile, startApp, type TestApp, until } from '../harness/app.ts'
import { picture } from '../harness/pictures.ts'
import { mcpClients } from './mcp-clients.ts'

let app: TestApp
let png: string
beforeAll(async () => {
  png = (await picture(8, 8)).toString('base64')
  app = await startApp({
    operatorFile: urls => {
      const file = defaultOperatorFile(urls)
      return { ...file, models: [...file.models, { id: 'draw', kind: 'image', inr_per_image: 3, routes: [{ provider: 'alpha', upstream_model: 'up' }] }] }
    },
  })
})
afterAll(() => app.stop())
beforeEach(() => {
  for (const upstream of [app.alpha, app.beta, app.indus]) upstream.reset()
})
const clients = mcpClients(() => app, '/mcp?toolsets=all')
afterEach(() => clients.closeAll())

const totals = async () => (await app.call('GET', '/v1/usage')).json.totals
const ids = (data: { models: { id: string }[] }) => data.models.map(({ id }) => id)

describe.each(clients.eras)('in the %s', (_era, connect) => {
  test('models_list filters models, has pages, and shows lines with prices', async () => {
    const client = await connect()
    const list = async (args: object) => (await client.call('models_list', { ...args })).data
    const all = (await app.call('GET', '/v1/models')).json.data
    expect((await list({ limit: 100 })).total).toBe(all.length)
    expect(ids(await list({ query: 'TEST model' }))).toEqual(['test-model'])
    expect(ids(await list({ kind: 'embedding', query: 'test' }))).toEqual(['test-embed'])
    expect(ids(await list({ kind: 'image', query: 'draw' }))).toEqual(['draw'])
    const inIndia = await list({ kind: 'chat', residency: 'india', limit: 100 })
    expect(ids(inIndia)).toContain('test-model')
    expect(ids(inIndia)).not.toContain('alpha-only')
    expect(ids(await list({ available: true, limit: 100 }))).toContain('test-model')
    expect(ids(await list({ kind: 'chat', tools: true, query: 'o' }))).not.toContain('global-only')
    const cheap = await list({ kind: 'chat', max_price: 10, limit: 100 })
    expect(ids(cheap)).toContain('global-only')
    expect(ids(cheap)).not.toContain('test-model')
    expect(ids(await list({ kind: 'image', query: 'draw', max_price: 2 }))).toEqual([])
    const named = await list({ ids: ['test-model', 'nowhere', 'alpha-only'] })
    expect([ids(named), named.unknown_ids]).toEqual([['test-model', 'alpha-only'], ['nowhere']])
    expect(named.models[0]).toMatchObject({ providers: ['alpha', 'beta', 'indus'], available: true })
    expect(named.models[0]).not.toHaveProperty('routes')
    const first = await list({ limit: 2 })
    const second = await list({ limit: 2, cursor: first.next_cursor })
    // Available models come first. Otherwise the order is that of the catalog.
    const works = (entry: { routes: { available: boolean; configured: boolean }[] }): boolean => entry.routes.some(route => route.available && route.configured)
    expect(all.some((entry: never) => !works(entry))).toBe(true)
    expect([...ids(first), ...ids(second)]).toEqual(
      all
        .filter(works)
        .slice(0, 4)
        .map(({ id }: { id: string }) => id),
    )
    expect((await client.call('models_list', { ids: ['gpt-4o'] })).text).toContain('NOT CONFIGURED')
    expect((await list({ available: true, ids: ['gpt-4o'] })).models).toEqual([])
    const { text } = await client.call('models_list', { query: 'test', limit: 1 })
    expect(text).toMatch(/^\d+ models, 1 to 1:\ntest-\S+ · .*₹\d+.* per million tokens .*\nMore with cursor "1"\.$/)
    expect((await client.call('models_list', { query: 'nothing like it' })).text).toContain('Leave a filter out')
    expect(app.alpha.requests).toHaveLength(0)
  })

  test('models_list shows a credential only the models that it may use', async () => {
    const cookie = await app.signIn()
    const { key } = (await app.call('POST', '/me/keys', { name: `narrow ${Math.random()}`, allowed_models: ['alpha-only'] }, { cookie })).json
    const client = await connect(key)
    expect(ids((await client.call('models_list', { kind: 'chat', limit: 100 })).data)).toEqual(['alpha-only'])
    expect((await client.call('models_list', { ids: ['test-model'] })).data.unknown_ids).toEqual(['test-model'])
  })

  test('route_preview says where a call would go and why other routes are skipped. It dials no provider and counts nothing', async () => {
    const client = await connect()
    const before = await totals()
    const reply = await client.call('route_preview', { model: 'test-model', prompt: 'Hello', exclude: ['beta'] })
    expect(reply.data).toMatchObject({
      model: 'test-model',
      provider: 'alpha',
      candidates: [{ provider: 'alpha' }, { provider: 'indus' }],
      excluded: [{ provider: 'beta', why: expect.stringContaining('excluded') }],
    })
    expect(reply.text).toMatch(
      /^test-model at alpha \(.*\)\n1\. test-model at alpha: .*\n2\. test-model at indus: .*\nNot asked:\n- excluded.*: test-model at beta/,
    )
    expect((await client.call('route_preview', { prompt: 'Write a function', tools: true })).data).toMatchObject({
      preset: expect.any(String),
      capability: expect.any(String),
    })
    expect((await client.call('route_preview', { model: 'test-embed', kind: 'embedding', prompt: 'x' })).data).toMatchObject({ provider: 'alpha' })
    expect((await client.call('route_preview', { model: 'draw', kind: 'image', prompt: 'x' })).data).toMatchObject({ provider: 'alpha' })
    expect((await client.call('route_preview', { model: 'test-embed' })).data).toMatchObject({ model: 'test-embed' })
    expect((await client.call('route_preview', { model: 'alpha-only', data_policy: 'india_only' })).data).toMatchObject({ code: 'no_route', status: 422 })
    expect([app.alpha, app.beta, app.indus].map(({ requests }) => requests.length)).toEqual([0, 0, 0])
    expect(await totals()).toEqual(before)
  })

  test('HARD-03 embed does not read a reply that is far too long', async () => {
    const client = await connect()
    const numbers = `[${'0.12345678901234567,'.repeat(450_000)}1]`
    app.alpha.script([
      { body: `{"data":[{"index":0,"embedding":${numbers}}],"usage":{"prompt_tokens":1,"total_tokens":1}}`, headers: { 'content-type': 'application/json' } },
    ])
    const { data } = await client.call('embed', { model: 'test-embed', input: ['red apple'] })
    expect(data).toMatchObject({ status: 502, message: expect.stringContaining('more than 8388608 bytes') })
  })

  test('HARD-03 embed refuses a reply of millions of numbers, and compares 64 vectors of 4,096 numbers', async () => {
    const client = await connect()
    const input = Array.from({ length: 64 }, (_, index) => `text ${index}`)
    const reply = (dims: number) => {
      const data = input.map((_, index) => `{"index":${index},"embedding":[${'1,'.repeat(dims - 1)}${index}]}`)
      return { body: `{"data":[${data.join()}],"usage":{"prompt_tokens":1,"total_tokens":1}}`, headers: { 'content-type': 'application/json' } }
    }
    app.alpha.script([reply(62_000), reply(4096), reply(4096), reply(2048)])
    const embed = async (more: object = {}) => (await client.call('embed', { model: 'test-embed', input, ...more })).data
    expect(await embed()).toMatchObject({ status: 502, message: expect.stringContaining('more than 263168 values') })
    const made = await embed()
    expect([made.dims, made.vectors.length, made.truncated, made.similarity[0][0]]).toEqual([4096, 64, true, 1])
    expect(await embed({ vectors: 'full' })).toMatchObject({ status: 502, message: expect.stringContaining('more than 131072 numbers') })
    expect((await embed({ vectors: 'full' })).vectors[63][2047]).toBe(63)
  })

  test('embed returns shortened vectors and the similarity of the texts, or whole vectors on request, and is metered', async () => {
    const client = await connect()
    const before = await totals()
    const vector = (...start: number[]) => [...start, ...Array.from({ length: 13 }, () => 0)]
    app.alpha.script(() => ({
      body: {
        object: 'list',
        model: 'up',
        data: [vector(1, 0, 0), vector(0, 1, 0), vector(1, 0.1, 0)].map((embedding, index) => ({ object: 'embedding', index, embedding })),
        usage: { prompt_tokens: 9, total_tokens: 9 },
      },
    }))
    const args = { model: 'test-embed', input: ['red apple', 'car', 'green apple'] }
    const short = await client.call('embed', args)
    expect(short.data).toMatchObject({ dims: 16, truncated: true, provider: 'alpha', usage: { prompt_tokens: 9 }, cost_inr: expect.any(Number) })
    expect(short.data.vectors.map((one: number[]) => one.length)).toEqual([8, 8, 8])
    expect(short.data.similarity[0]).toEqual([1, 0, 0.995])
    expect(short.text).toMatch(/^3 vectors of 16 dimensions · .* at alpha · 9 tokens · ₹.*\n1 "red apple": nearest 3 "green apple" at 0\.995\n/)
    const whole = await client.call('embed', { ...args, vectors: 'full' })
    expect(whole.data).toMatchObject({ truncated: false, vectors: [vector(1, 0, 0), vector(0, 1, 0), vector(1, 0.1, 0)] })
    expect(whole.text.length).toBeLessThan(500)
    expect(app.alpha.requests[0]?.json).toMatchObject({ input: args.input, encoding_format: 'float' })
    expect(app.alpha.requests[0]?.json).not.toHaveProperty('vectors')
    const after = await totals()
    expect([after.requests - before.requests, after.prompt_tokens - before.prompt_tokens]).toEqual([2, 18])
    for (const input of [[], Array.from({ length: 65 }, () => 'x'), ['']])
      expect((await client.call('embed', { ...args, input })).data).toMatchObject({ code: 'bad_request', status: 400 })
    expect((await client.call('embed', { ...args, data_policy: 'india_only' })).data.provider).toBe('indus')
  })

  test('image_generate returns pictures as blocks or links, with their cost, and reports a refusal', async () => {
    const client = await connect()
    const before = await totals()
    app.alpha.script([
      { body: { created: 1, data: [{ b64_json: png }, { b64_json: png }] } },
      { body: { created: 1, data: [{ url: 'https://pictures.example/1.png' }] } },
      { status: 400, body: { error: { message: 'not that', code: 'moderation' } } },
    ])
    const drawn = await client.call('image_generate', { prompt: 'a boat', model: 'draw', n: 2, size: '512x512' })
    expect(drawn.isError).toBeUndefined()
    expect(drawn.more).toEqual([
      { type: 'image', data: png, mimeType: 'image/png' },
      { type: 'image', data: png, mimeType: 'image/png' },
    ])
    expect(drawn.data).toMatchObject({ model: 'draw', provider: 'alpha', cost_inr: 6, images: [{ type: 'image', mime_type: 'image/png' }, {}] })
    expect(drawn.text).toBe('2 pictures · draw at alpha · ₹6.00')
    expect(JSON.stringify(drawn.data)).not.toContain(png)
    expect(app.alpha.requests[0]?.json).toMatchObject({ prompt: 'a boat', n: 2, size: '512x512', response_format: 'b64_json' })
    const linked = await client.call('image_generate', { prompt: 'a boat', model: 'draw', deliver: 'link' })
    expect(linked.more).toEqual([{ type: 'resource_link', uri: 'https://pictures.example/1.png', name: 'picture 1' }])
    expect(linked.text).toContain('https://pictures.example/1.png')
    expect(app.alpha.requests[1]?.json).toMatchObject({ response_format: 'url' })
    const refused = await client.call('image_generate', { prompt: 'a boat', model: 'draw' })
    expect(refused).toMatchObject({ isError: true, data: { status: 400 } })
    expect(refused.text).toContain('not that')
    await until(async () => (await totals()).cost_inr - before.cost_inr > 8.9)
    expect((await totals()).cost_inr - before.cost_inr).toBeCloseTo(9, 6)
    for (const wrong of [{ n: 5 }, { size: 'large' }, { prompt: '' }, { deliver: 'post' }])
      expect((await client.call('image_generate', { prompt: 'a boat', model: 'draw', ...wrong })).data).toMatchObject({ code: 'bad_request' })
  })
})

test('a slow picture reports progress, and a picture that the caller cancels is still finished and charged', async () => {
  const before = await totals()
  app.alpha.script([{ hold: true, body: { created: 1, data: [{ url: 'https://images.example/1.png' }] } }])
  const client = await clients.initializeClient()
  const steps: unknown[] = []
  const stop = new AbortController()
  const call = client.call('image_generate', { prompt: 'a boat', model: 'draw' }, stop.signal, step => steps.push(step)).catch(() => 'cancelled')
  await until(() => app.alpha.requests.length === 1 && steps.length === 1)
  expect(steps).toMatchObject([{ progress: 0, message: 'drawing' }])
  stop.abort()
  expect(await call).toBe('cancelled')
  app.alpha.release()
  await until(async () => (await totals()).requests === before.requests + 1)
  expect((await totals()).cost_inr - before.cost_inr).toBeGreaterThan(0)
  expect(app.alpha.requests[0]?.aborted).toBe(false)
})
