import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { defaultOperatorFile, startApp, type TestApp } from '../../harness/app.ts'

const hello = [{ role: 'user', content: 'Hello there' }]
const route = (provider: string, upstream_model: string) => ({
  provider,
  upstream_model,
  input_inr_per_mtok: 10,
  output_inr_per_mtok: 40,
  source: 'test',
  as_of: '2026-01-01',
})
const odd = ['maker/model:tag', 'maker/deep/model:7b']

/** A chain with the maximum number of steps, all different. */
const ten = [
  ...['alpha', 'beta', 'indus'].map(provider => ({ model: 'test-model', provider })),
  ...['test-model', 'alpha-only', 'same-id', 'global-only', 'mute-model', 'byok-model'].map(model => ({ model })),
  { model: 'alpha-only', provider: 'alpha' },
]

describe('saved chains', () => {
  let app: TestApp
  let owner: string
  let admin: string
  let member: string
  beforeAll(async () => {
    app = await startApp({
      operatorFile: urls => {
        const file = defaultOperatorFile(urls)
        const models = [
          ...odd.map(id => ({ id, kind: 'chat', context_length: 1000, routes: [route('alpha', 'odd')] })),
          { id: 'beta-only', kind: 'chat', context_length: 1000, routes: [route('beta', 'beta-only')] },
          { id: 'indus-only', kind: 'chat', context_length: 1000, routes: [route('indus', 'indus-only')] },
        ]
        return { providers: file.providers, models: [...file.models, ...models] }
      },
    })
    owner = await app.signIn()
    admin = (await app.newMember('admin')).cookie
    member = (await app.newMember('member')).cookie
  })
  afterAll(() => app.stop())
  afterEach(async () => {
    for (const { model } of (await list()).json.chains) await app.call('DELETE', `/me/routing/${encodeURIComponent(model)}`, undefined, { cookie: owner })
    for (const upstream of [app.alpha, app.beta, app.indus]) upstream.reset()
  })

  const list = (cookie = member) => app.call('GET', '/me/routing', undefined, { cookie })
  const put = (model: string, steps: unknown, cookie = admin) => app.call('PUT', `/me/routing/${model}`, { steps }, { cookie })
  const codeOf = async (reply: ReturnType<typeof put>) => [(await reply).status, (await reply).json.error?.code]
  const chat = (body: object = {}, token = app.key) => app.call('POST', '/v1/chat/completions', { model: 'test-model', messages: hello, ...body }, { token })
  const served = async (body: object = {}, token = app.key) => {
    const reply = await chat(body, token)
    return [reply.status, reply.json.error?.code ?? reply.headers.get('x-br-provider')]
  }
  const dialed = () => [app.alpha, app.beta, app.indus].map(upstream => upstream.requests.length)

  test('CHAIN-01 CHAIN-04 SHAPE-18 owners and admins save 1 to 10 steps, and a string step equals {model}', async () => {
    for (const cookie of [owner, admin]) {
      const reply = await put('test-model', ['alpha-only', { model: 'test-model', provider: 'beta' }, { model: 'same-id', provider: null }], cookie)
      expect([reply.status, reply.json]).toEqual([
        200,
        { ok: true, model: 'test-model', steps: [{ model: 'alpha-only' }, { model: 'test-model', provider: 'beta' }, { model: 'same-id' }] },
      ])
    }
    expect((await put('alpha-only', ['same-id'])).json.steps).toEqual((await put('alpha-only', [{ model: 'same-id' }])).json.steps)
    expect((await put('same-id', ten)).json.steps).toHaveLength(10)
    const read = await app.call('GET', '/me/routing/alpha-only', undefined, { cookie: member })
    expect(read.json).toEqual({ model: 'alpha-only', steps: [{ model: 'same-id' }] })
    expect((await list()).json).toEqual({
      chains: [
        { model: 'alpha-only', steps: [{ model: 'same-id' }] },
        { model: 'same-id', steps: ten },
        { model: 'test-model', steps: [{ model: 'alpha-only' }, { model: 'test-model', provider: 'beta' }, { model: 'same-id' }] },
      ],
      next_cursor: null,
    })
  })

  test('a chain with the same step twice gets 400 bad_steps with both places, and nothing is saved', async () => {
    const before = (await list()).text
    for (const steps of [
      ['alpha-only', 'same-id', 'alpha-only'],
      ['alpha-only', 'same-id', { model: 'alpha-only' }],
      ['test-model', { model: 'test-model', provider: 'beta' }, { model: 'test-model', provider: null }, { model: 'test-model', provider: 'beta' }],
    ]) {
      const reply = await put('test-model', steps)
      expect([reply.status, reply.json.error.code, reply.json.error.message]).toEqual([
        400,
        'bad_steps',
        expect.stringMatching(/"steps\[2\]" is the same as "steps\[0\]"/),
      ])
    }
    expect((await list()).text).toBe(before)
  })

  test('CHAIN-02 CHAIN-15 no steps, eleven steps, a value that is not a list, an invalid step and unknown fields get 400 bad_steps, and nothing is saved', async () => {
    const wrong = [
      [],
      Array(11).fill('alpha-only'),
      'alpha-only',
      {},
      null,
      undefined,
      7,
      [7],
      [null],
      [''],
      [{}],
      [{ model: 7 }],
      [{ model: 'alpha-only', provider: 7 }],
    ]
    for (const steps of [...wrong, [{ model: 'alpha-only', weight: 1 }]]) {
      const reply = await put('test-model', steps)
      expect([reply.status, reply.json.error.code], JSON.stringify(steps)).toEqual([400, 'bad_steps'])
      expect(reply.json.error.message).toContain('steps')
    }
    expect((await list()).json).toEqual({ chains: [], next_cursor: null })
  })

  test('CHAIN-03 CHAIN-18 a chain for an unknown model or a virtual id gets 400 bad_model', async () => {
    for (const id of ['nothing', 'alpha/nothing', 'auto', 'auto:cheapest', 'best'])
      expect(await codeOf(put(id, ['alpha-only'])), id).toEqual([400, 'bad_model'])
  })

  test('CHAIN-17 CHAIN-05 a step is a catalog id, a virtual id or provider/model-id of a known provider, and other values get 400 bad_steps', async () => {
    for (const step of ['alpha-only', 'auto', 'auto:cheapest', 'alpha/some-model', 'alpha/deep/er:7b', 'openai/any']) {
      const reply = await put('test-model', [step])
      expect([reply.status, reply.json.steps], step).toEqual([200, [{ model: step }]])
    }
    for (const step of ['nothing', 'nobody/model', 'alpha/', '/model', { model: 'alpha-only', provider: 'nobody' }]) {
      const reply = await put('test-model', ['alpha-only', step])
      expect([reply.status, reply.json.error.code], JSON.stringify(step)).toEqual([400, 'bad_steps'])
      expect(reply.json.error.message).toContain('steps[1]')
    }
  })

  test('CHAIN-07 a member may read chains, and gets 403 for saving or deleting one', async () => {
    await put('test-model', ['alpha-only'])
    expect(await codeOf(put('test-model', ['same-id'], member))).toEqual([403, 'forbidden'])
    expect(await codeOf(put('nothing', 'bad', member))).toEqual([403, 'forbidden'])
    expect(await codeOf(app.call('DELETE', '/me/routing/test-model', undefined, { cookie: member }))).toEqual([403, 'forbidden'])
    expect((await list()).json.chains).toEqual([{ model: 'test-model', steps: [{ model: 'alpha-only' }] }])
  })

  test('CHAIN-08 reading or deleting an unknown chain gets 404, even when another organisation has it', async () => {
    await put('alpha-only', ['same-id'])
    const other = await app.otherOrg('Neighbour')
    const theirs = await app.signIn(other.userId, other.orgId)
    for (const [model, cookie] of [
      ['test-model', owner],
      ['nothing', owner],
      ['alpha-only', theirs],
    ] as const) {
      expect(await codeOf(app.call('GET', `/me/routing/${model}`, undefined, { cookie })), model).toEqual([404, 'not_found'])
      expect(await codeOf(app.call('DELETE', `/me/routing/${model}`, undefined, { cookie })), model).toEqual([404, 'not_found'])
    }
    expect((await app.call('GET', '/me/routing', undefined, { cookie: theirs })).json).toEqual({ chains: [], next_cursor: null })
    expect(await served({ model: 'alpha-only' }, other.key)).toEqual([200, 'alpha'])
  })

  test('CHAIN-14 ids with slashes and colons work in the path, plain or percent-encoded', async () => {
    for (const id of odd) {
      for (const path of [id, encodeURIComponent(id), encodeURI(id).replaceAll(':', '%3A')]) {
        expect((await put(path, ['beta-only'])).json, path).toEqual({ ok: true, model: id, steps: [{ model: 'beta-only' }] })
        expect((await app.call('GET', `/me/routing/${path}`, undefined, { cookie: member })).json.model, path).toBe(id)
        expect(await served({ model: id })).toEqual([200, 'beta'])
        expect((await app.call('DELETE', `/me/routing/${path}`, undefined, { cookie: owner })).status, path).toBe(200)
        expect(await served({ model: id })).toEqual([200, 'alpha'])
      }
    }
  })

  test('CHAIN-16 every role of the organisation sees all its chains, and an API key does not replace a sign-in', async () => {
    await put('test-model', ['alpha-only'])
    await put('alpha-only', ['same-id'])
    for (const cookie of [owner, admin, member])
      expect((await list(cookie)).json.chains.map((chain: { model: string }) => chain.model)).toEqual(['alpha-only', 'test-model'])
    const { token } = await app.newAgent('reader')
    expect((await app.call('GET', '/me/routing', undefined, { token })).json.chains).toHaveLength(2)
    expect(await codeOf(app.call('GET', '/me/routing'))).toEqual([401, 'no_session'])
  })

  test('ROUTE-42 CHAIN-10 a saved chain replaces the default routing of its model for the whole organisation, until it is deleted', async () => {
    await put('test-model', ['indus-only', { model: 'test-model', provider: 'beta' }])
    const colleague = (await app.newKey({ scope: 'inference', withUser: false })).key
    for (const key of [app.key, colleague]) expect(await served({}, key)).toEqual([200, 'indus'])
    expect(await served({ model: 'alpha-only' })).toEqual([200, 'alpha'])
    app.indus.script([{ status: 503 }])
    app.beta.script([{ status: 503 }])
    // Alpha serves the model by default, but is not a step of the chain.
    expect(await served()).toEqual([502, 'all_routes_failed'])
    expect(dialed()).toEqual([1, 1, 3])
    await app.call('DELETE', '/me/routing/test-model', undefined, { cookie: owner })
    expect(await served()).toEqual([200, 'alpha'])
  })

  test('ROUTE-43 after a step fails with 5xx, 429 or a broken connection, the next step is tried', async () => {
    await put('test-model', ['indus-only', 'beta-only', 'alpha-only'])
    for (const failure of [{ status: 500 }, { status: 429 }, { reset: true }]) {
      app.indus.script([failure])
      app.beta.script([failure])
      expect(await served(), JSON.stringify(failure)).toEqual([200, 'alpha'])
    }
  })

  test('CHAT-27 the reply names the model that answered', async () => {
    await put('test-model', ['beta-only', 'indus-only'])
    expect((await chat()).json.model).toBe('beta-only')
    app.beta.script([{ status: 500 }])
    expect((await chat()).json.model).toBe('indus-only')
    app.beta.script([{ status: 500 }])
    expect((await chat({ fallbacks: ['beta-only', 'same-id'] })).json.model).toBe('same-id')
  })

  test('ROUTE-24 a pinned provider takes precedence over a saved chain', async () => {
    await put('test-model', ['indus-only'])
    expect(await served({ provider: 'beta' })).toEqual([200, 'beta'])
    expect(await served({ provider: 'murky' })).toEqual([400, 'no_route'])
  })

  test('ROUTE-40 fallbacks replace the saved chain for one call', async () => {
    await put('test-model', ['indus-only'])
    expect(await served({ fallbacks: ['beta-only'] })).toEqual([200, 'beta'])
    app.beta.script([{ status: 500 }])
    expect(await served({ fallbacks: ['beta-only'] })).toEqual([502, 'all_routes_failed'])
    expect(await served()).toEqual([200, 'indus'])
  })

  test('ROUTE-41 fallbacks that are malformed, empty or more than ten get 400 bad_steps, and no provider is dialed', async () => {
    const wrong = [
      [],
      Array(11).fill('alpha-only'),
      'alpha-only',
      {},
      7,
      [7],
      [''],
      [{}],
      [{ model: 'alpha-only', provider: 7 }],
      [{ model: 'alpha-only', weight: 1 }],
    ]
    for (const fallbacks of wrong) expect(await served({ fallbacks }), JSON.stringify(fallbacks)).toEqual([400, 'bad_steps'])
    expect(dialed()).toEqual([0, 0, 0])
  })

  test('CHAIN-11 CHAIN-12 a step that cannot be resolved is skipped. When no step can, the reply is 400 no_route before any dial', async () => {
    const dead = [{ model: 'alpha-only', provider: 'beta' }, 'alpha/undiscovered', 'test-embed', 'openai/unsaved']
    await put('test-model', [...dead, 'indus-only', 'byok-model'])
    expect(await served()).toEqual([200, 'indus'])
    await put('test-model', dead)
    expect(await served()).toEqual([400, 'no_route'])
    expect(dialed()).toEqual([0, 0, 1])
  })

  test('CHAIN-13 a step whose model has its own chain uses the default routing of that model', async () => {
    await put('alpha-only', ['indus-only'])
    await put('test-model', ['alpha-only'])
    expect(await served()).toEqual([200, 'alpha'])
    expect(await served({ fallbacks: ['alpha-only'] })).toEqual([200, 'alpha'])
    await put('test-model', ['test-model'])
    expect(await served()).toEqual([200, 'alpha'])
  })

  test('CHAIN-19 residency and exclude apply to every step, and a chain without remaining steps gets 422', async () => {
    await put('test-model', ['alpha-only', 'test-model', 'beta-only'])
    expect(await served({ data_policy: 'india_only' })).toEqual([200, 'indus'])
    expect(await served({ exclude: ['alpha'] })).toEqual([200, 'beta'])
    expect(await served({ exclude: ['alpha', 'indus', 'beta/test-model'] })).toEqual([200, 'beta'])
    expect(await served({ exclude: ['alpha', 'beta', 'indus'] })).toEqual([422, 'no_route'])
    expect(dialed()).toEqual([0, 2, 1])
    await put('test-model', ['alpha-only', 'beta-only'])
    expect(await served({ data_policy: 'india_only' })).toEqual([422, 'no_route'])
  })

  test('an embedding model can have a chain too, and a virtual id can be a step', async () => {
    await put('test-embed', [{ model: 'test-embed', provider: 'indus' }])
    const reply = await app.call('POST', '/v1/embeddings', { model: 'test-embed', input: 'x' })
    expect(reply.headers.get('x-br-provider')).toBe('indus')
    await put('test-model', [{ model: 'auto:sovereign', provider: null }])
    expect(await served()).toEqual([200, 'indus'])
  })
})
