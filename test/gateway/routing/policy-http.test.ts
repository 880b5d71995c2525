import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../harness/app.ts'
import { propertyRuns } from '../../harness/property-runs.ts'
import { modelRow, providerRow, routeRow } from './file-rows.ts'

const say = (content: unknown): object[] => [{ role: 'user', content }]

/** Four models over three providers, one of them in India. Also images from two providers, and a voice. */
function file(urls: { alpha: string; beta: string; indus: string }): object {
  const picture = (id: string) => ({ provider: id, source: 'test', as_of: '2026-01-01' })
  return {
    providers: [
      providerRow('alpha', urls.alpha, 'global'),
      providerRow('beta', urls.beta, 'global'),
      providerRow('indus', urls.indus, 'india'),
      providerRow('murky', urls.beta, 'unknown'),
    ],
    models: [
      modelRow('three', [routeRow('alpha', 10), routeRow('beta', 20), routeRow('indus', 30)]),
      modelRow('murk', [routeRow('murky', 1), routeRow('alpha', 5)]),
      modelRow('seer', [routeRow('beta', 50), routeRow('indus', 60)], { modalities: ['text', 'image'], reasoning: true }),
      modelRow('plain', [routeRow('alpha', 2)], { tools: false }),
      { id: 'vectors', kind: 'embedding', context_length: 8000, dimensions: 8, routes: [routeRow('alpha', 1), routeRow('indus', 2)] },
      { id: 'brush', kind: 'image', inr_per_image: 1, edits: false, routes: [picture('alpha'), picture('indus')] },
      { id: 'pencil', kind: 'image', inr_per_image: 2, edits: true, routes: [picture('beta')] },
      { id: 'voice', kind: 'speech', routes: [{ provider: 'alpha', inr_per_million_characters: 1, source: 'test', as_of: '2026-01-01' }] },
      { id: 'ears', kind: 'transcription', routes: [{ provider: 'beta', inr_per_minute: 1, source: 'test', as_of: '2026-01-01' }] },
    ],
    rankings: { capabilities: { code: ['seer', 'three'], general: ['three'], math: ['seer'] }, tool_calls: ['three', 'seer'] },
  }
}

describe('routes that a request excludes', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({ operatorFile: file, env: { CIRCUIT_FAILURES: '1000' } })
  })
  afterAll(() => app.stop())
  beforeEach(() => {
    for (const upstream of all()) upstream.reset()
  })
  const all = () => [app.alpha, app.beta, app.indus]
  const preview = (body: object) => app.call('POST', '/me/route/preview', body)

  const ids = [
    'three',
    'murk',
    'seer',
    'plain',
    'auto',
    'best',
    'auto:agent',
    'auto:code',
    'auto:cheapest',
    'auto:fastest',
    'auto:vision',
    'auto:long-context',
    'auto:sovereign',
  ] as const
  const bodies = fc.record(
    {
      model: fc.constantFrom(...ids),
      content: fc.constantFrom('Hello', 'Fix app.ts:\n```ts\n```', 'What is the integral of sin(x) dx?', 'नमस्ते दुनिया'),
      optimize: fc.constantFrom('price', 'latency', 'uptime', 'throughput', 'quality', 'auto'),
      optimize_weights: fc.record({ price: fc.nat(3), latency: fc.nat(3) }),
      route: fc.constant('best'),
      provider: fc.constantFrom('alpha', 'beta', 'indus', 'murky'),
      data_policy: fc.constant('india_only'),
      exclude: fc.subarray(['alpha', 'beta', 'indus', 'alpha/three', 'murky/murk']),
      fallbacks: fc.array(fc.constantFrom('three', 'seer', 'plain', 'auto:cheapest', 'best', 'murk'), { minLength: 1, maxLength: 3 }),
    },
    { requiredKeys: ['model', 'content'], noNullPrototype: true },
  )

  test('ROUTE-26 ROUTE-29 ROUTE-36 ROUTE-31 no provider outside residency, pin and exclusions is dialed, for any request and any failing routes', async () => {
    await fc.assert(
      fc.asyncProperty(bodies, fc.subarray(['alpha', 'beta', 'indus']), async ({ content, ...body }, broken) => {
        for (const [index, upstream] of all().entries()) {
          upstream.reset()
          if (broken.includes(['alpha', 'beta', 'indus'][index] ?? '')) upstream.script(() => ({ status: 503 }))
        }
        const reply = await app.call('POST', '/v1/chat/completions', { ...body, messages: say(content) })
        const dialed = { alpha: app.alpha.requests, beta: app.beta.requests, indus: app.indus.requests }
        const total = Object.values(dialed).flat().length
        if (body.data_policy === 'india_only') expect([dialed.alpha.length, dialed.beta.length]).toEqual([0, 0])
        for (const name of ['alpha', 'indus'] as const) if (body.exclude?.includes(name)) expect(dialed[name]).toEqual([])
        // The providers beta and murky share one server.
        if (body.exclude?.includes('beta') && body.exclude.includes('murky/murk')) expect(dialed.beta).toEqual([])
        if (body.provider !== undefined && body.provider !== 'murky')
          for (const name of ['alpha', 'beta', 'indus'] as const) if (name !== body.provider) expect(dialed[name]).toEqual([])
        expect([200, 400, 404, 422, 502]).toContain(reply.status)
        if (reply.status === 200 || reply.status === 502) expect(total).toBeGreaterThan(0)
        else expect(total).toBe(0)
      }),
      { numRuns: propertyRuns(150) },
    )
  })

  test('the preview names the first dial of a call for every API, or fails like the call', async () => {
    const picture = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' } }
    const cases: readonly (readonly [path: string, body: object])[] = [
      ['/v1/chat/completions', { model: 'three', messages: say('Hello'), optimize: 'quality' }],
      ['/v1/chat/completions', { model: 'best', messages: say('What is the integral of sin(x) dx?') }],
      ['/v1/chat/completions', { model: 'plain', route: 'best', messages: say('Fix app.ts:\n```ts\n```') }],
      ['/v1/messages', { model: 'auto', max_tokens: 20, system: 'Be short.', messages: say([picture]) }],
      ['/v1/messages', { model: 'auto:vision', max_tokens: 20, messages: say([picture]), data_policy: 'india_only' }],
      ['/v1/messages', { model: 'auto:cheapest', max_tokens: 20, messages: say('Hello'), tools: [{ name: 'f', input_schema: { type: 'object' } }] }],
      ['/v1/responses', { model: 'three', input: 'Hello', provider: 'beta' }],
      ['/v1/responses', { model: 'auto:code', input: 'Hello' }],
      ['/v1/responses', { model: 'auto:sovereign', input: 'Hello', exclude: ['indus'] }],
      ['/v1/embeddings', { model: 'vectors', input: ['a'], data_policy: 'india_only' }],
      ['/v1/embeddings', { model: 'vectors', input: 'a', provider: 'beta' }],
      ['/v1/images/generations', { model: 'brush', prompt: 'a tree' }],
      ['/v1/images/generations', { model: 'pencil', prompt: 'a tree', data_policy: 'india_only' }],
      ['/v1/images/generations', { model: 'auto', prompt: 'a tree' }],
      ['/v1/images/generations', { model: 'nobody', prompt: 'a tree' }],
      ['/v1/audio/speech', { model: 'voice', input: 'Hello', voice: 'alloy', data_policy: 'india_only' }],
    ]
    for (const [path, body] of cases) {
      const label = `${path} ${JSON.stringify(body)}`
      const [foretold, real] = [await preview(body), await app.call('POST', path, body)]
      const said = (reply: typeof real) => [reply.status, reply.json?.error?.code ?? reply.json?.error?.type]
      if (real.status < 300) expect([foretold.status, foretold.json.provider], label).toEqual([200, real.headers.get('x-br-provider')])
      else if (path === '/v1/messages') expect(foretold.status, label).toBe(real.status)
      else if (real.status !== 502) expect(said(foretold), label).toEqual(said(real))
    }
    const edit = (model: string) => preview({ model, prompt: 'a hat', image: 'the picture' })
    expect((await edit('pencil')).json).toMatchObject({ model: 'pencil', provider: 'beta' })
    for (const [model, outcome] of [
      ['brush', '400 unsupported_operation'],
      ['nobody', '400 model_not_found'],
    ] as const) {
      const reply = await edit(model)
      expect(`${reply.status} ${reply.json.error.code}`).toBe(outcome)
    }
    expect((await preview({ model: 'ears' })).json).toMatchObject({ model: 'ears', provider: 'beta' })
    expect((await preview({ model: 'best', messages: say('Fix app.ts:\n```ts\n```') })).json).toMatchObject({
      model: 'seer',
      capability: 'code',
      reason: 'rank_1_of_code; code_fence',
    })
  })

  test('ROUTE-52 provider, data_policy, optimize, exclude and upstream_key work for images and never reach the provider', async () => {
    const draw = (more: object) => app.call('POST', '/v1/images/generations', { model: 'brush', prompt: 'a tree', ...more })
    const drawn = { body: { created: 1, data: [{ b64_json: 'aGk=' }] }, status: 200 }
    for (const upstream of all()) upstream.script(() => drawn)
    expect((await draw({})).headers.get('x-br-provider')).toBe('alpha')
    expect((await draw({ provider: 'indus', optimize: 'latency' })).headers.get('x-br-provider')).toBe('indus')
    expect((await draw({ data_policy: 'india_only' })).headers.get('x-br-provider')).toBe('indus')
    expect((await draw({ exclude: ['alpha'] })).headers.get('x-br-provider')).toBe('indus')
    expect((await draw({ exclude: ['alpha', 'indus'] })).status).toBe(422)
    expect((await draw({ data_policy: 'somewhere' })).status).toBe(400)
    expect((await draw({ provider: 'alpha', upstream_key: 'sk-of-the-caller' })).status).toBe(200)
    expect(app.alpha.requests.at(-1)?.headers['authorization']).toBe('Bearer sk-of-the-caller')
    const names = ['provider', 'data_policy', 'optimize', 'exclude', 'upstream_key']
    for (const { json } of all().flatMap(upstream => upstream.requests)) expect(Object.keys(json ?? {}).filter(name => names.includes(name))).toEqual([])
  })

  test("CAT-20 with a credential, the list of models includes those on the organisation's own keys, within the credential's rules. Nobody else sees them", async () => {
    const ids = async (token: string | null) => ((await app.call('GET', '/v1/models', undefined, { token })).json.data as { id: string }[]).map(({ id }) => id)
    const before = await ids(app.key)
    app.beta.script({ status: 200, body: { object: 'list', data: [{ id: 'found-one' }, { id: 'group/found-two' }] } })
    const cookie = await app.signIn()
    expect((await app.call('PUT', '/me/byok/beta', { key: 'sk-saved-beta-key-0003' }, { cookie })).status).toBe(200)
    const found = ['beta/found-one', 'beta/group/found-two']
    expect((await ids(app.key)).filter(id => !before.includes(id))).toEqual(found)
    for (const token of [null, 'br_live_wrong', (await app.otherOrg('Elsewhere')).key]) expect((await ids(token)).filter(id => found.includes(id))).toEqual([])
    const one = await app.call('GET', '/v1/models/beta/group/found-two')
    expect(one.json).toMatchObject({ id: 'beta/group/found-two', owned_by: 'beta', routes: [{ provider: 'beta', byok_only: true, maintenance: false }] })
    expect((await app.call('GET', '/v1/models/beta%2Ffound-one', undefined, { token: null })).json.error.code).toBe('model_not_found')
    const { key, keyId } = await app.newKey()
    const allowed = await app.call('PATCH', `/me/keys/${keyId}`, { allowed_models: ['three', 'beta/found-one'] }, { cookie })
    expect(allowed.status).toBe(200)
    expect((await ids(key)).filter(id => found.includes(id) || id === 'murk')).toEqual(['beta/found-one'])
    expect(
      (await app.call('POST', '/v1/chat/completions', { model: 'beta/found-one', messages: say('Hello') }, { token: key })).headers.get('x-br-provider'),
    ).toBe('beta')
  })
})
