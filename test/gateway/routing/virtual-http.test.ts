import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../harness/app.ts'
import { modelRow, providerRow, routeRow } from './file-rows.ts'

const virtualIds = 'auto balanced cheapest fastest best agent code reasoning vision long-context sovereign'
  .split(' ')
  .map(name => (name === 'auto' ? name : `auto:${name}`))

/** Models with different prices, windows and abilities, and rankings that name them. */
function file(urls: { alpha: string; beta: string; indus: string }): object {
  return {
    providers: [providerRow('alpha', urls.alpha, 'global'), providerRow('beta', urls.beta, 'global'), providerRow('indus', urls.indus, 'india')],
    models: [
      modelRow('cheap', [routeRow('alpha', 1)], { tools: false }),
      modelRow('plain', [routeRow('alpha', 10), routeRow('beta', 12)]),
      modelRow('breaker', [routeRow('alpha', 2)]),
      modelRow('coder', [routeRow('beta', 30)]),
      modelRow('thinker', [routeRow('beta', 40)], { reasoning: true }),
      modelRow('seer', [routeRow('alpha', 50)], { modalities: ['text', 'image'] }),
      modelRow('wide', [routeRow('beta', 60, { context_length: 900_000 }), routeRow('alpha', 55, { context_length: 200_000 })], { context_length: 900_000 }),
      modelRow('ganga', [routeRow('indus', 70)], { languages: ['hi', 'en'], context_length: 20_000 }),
      modelRow('own', [routeRow('beta', 0, { byok_only: true })]),
      {
        id: 'vectors',
        kind: 'embedding',
        context_length: 8000,
        dimensions: 8,
        routes: [{ provider: 'alpha', input_inr_per_mtok: 1, source: 'test', as_of: '2026-01-01' }],
      },
    ],
    rankings: {
      capabilities: {
        code: ['own', 'coder', 'plain'],
        math: ['thinker'],
        multilingual: ['ganga'],
        'long-context': ['wide'],
        reasoning: ['thinker', 'plain'],
        general: ['plain', 'cheap'],
      },
      tool_calls: ['plain', 'coder'],
      corrupts_tool_calls: ['alpha/breaker'],
      tiers: { good: ['plain', 'coder'], best: ['thinker'] },
    },
  }
}

const say = (content: unknown): object[] => [{ role: 'user', content }]
const picture = [
  { type: 'text', text: 'What is this?' },
  { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } },
]
const tools = [{ type: 'function', function: { name: 'look', parameters: { type: 'object' } } }]
const fence = 'Why does this fail?\n```js\nlet x = 1\n```'

describe('virtual models over HTTP', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({ operatorFile: file, env: { CIRCUIT_FAILURES: '2', CIRCUIT_OPEN_MS: '600000' } })
  })
  afterAll(() => app.stop())
  beforeEach(() => {
    for (const upstream of all()) upstream.reset()
  })
  const all = () => [app.alpha, app.beta, app.indus]
  const dials = () => all().reduce((sum, upstream) => sum + upstream.requests.length, 0)
  const ask = (model: string, content: unknown = 'Hello', more: object = {}, token = app.key) =>
    app.call('POST', '/v1/chat/completions', { model, messages: say(content), ...more }, { token })
  const chosen = async (model: string, content: unknown = 'Hello', more: object = {}, token = app.key) => {
    const { status, json, headers } = await ask(model, content, more, token)
    return status === 200 ? `${json.model} at ${headers.get('x-br-provider')}` : `${status} ${json.error.code}`
  }
  const family = (headers: Headers, name: 'auto' | 'route') =>
    Object.fromEntries(
      [...headers].filter(([header]) => header === `x-br-${name}` || header.startsWith(`x-br-${name}-`)).map(([header, value]) => [header.slice(5), value]),
    )

  test('VIRT-02 ROUTE-17 auto and auto:balanced take the cheapest model that is capable enough for the prompt', async () => {
    for (const id of ['auto', 'auto:balanced']) {
      expect(await chosen(id, 'Hello'), id).toBe('cheap at alpha')
      expect(await chosen(id, 'Solve x^2 - 5x + 6 = 0'), id).toBe('plain at alpha')
      expect(await chosen(id, 'Prove rigorously, step by step, that the algorithm is optimal, with production-grade TypeScript code'), id).toBe(
        'thinker at beta',
      )
      expect(await chosen(id, 'मुझे दिल्ली के बारे में बताओ'), id).toBe('ganga at indus')
    }
  })

  test('VIRT-03 auto:cheapest takes the lowest price for any prompt', async () => {
    expect(await chosen('auto:cheapest')).toBe('cheap at alpha')
    expect(await chosen('auto:cheapest', fence)).toBe('cheap at alpha')
  })

  test('VIRT-05 ROUTE-16 VIRT-24 best, auto:best and route: best pick the same model, whatever model the request names, and the reply says which', async () => {
    for (const [model, more] of [
      ['best', {}],
      ['auto:best', {}],
      ['auto', { route: 'best' }],
      ['plain', { route: 'best' }],
      ['ganga', { route: 'best' }],
    ] as const)
      expect(await chosen(model, fence, more), model).toBe('coder at beta')
  })

  test('VIRT-06 auto:agent orders models with tools by the reliability of their tool calls, and never uses a route that is known to break them', async () => {
    expect(await chosen('auto:agent')).toBe('plain at alpha')
    expect(
      await chosen('auto:agent', 'Hello', {
        exclude: ['alpha/plain', 'beta/plain', 'beta/coder', 'beta/thinker', 'alpha/seer', 'beta/wide', 'alpha/wide', 'indus'],
      }),
    ).toBe('404 no_route')
    expect(dials()).toBe(1)
  })

  test('VIRT-07 auto:code follows the curated code ranking of models with tools', async () => {
    expect(await chosen('auto:code', 'Hello')).toBe('coder at beta')
    expect(await chosen('auto:code', 'Hello', { exclude: ['beta'] })).toBe('plain at alpha')
    expect(await chosen('auto:code', 'Hello', { exclude: ['beta', 'alpha/plain', 'alpha/breaker', 'alpha/seer', 'alpha/wide', 'indus'] })).toBe('404 no_route')
  })

  test('VIRT-08 VIRT-09 auto:reasoning takes models that reason, and auto:vision takes models that read images, with and without an image', async () => {
    expect(await chosen('auto:reasoning')).toBe('thinker at beta')
    expect(await chosen('auto:reasoning', 'Hello', { exclude: ['beta'] })).toBe('404 no_route')
    expect(await chosen('auto:vision', picture)).toBe('seer at alpha')
    expect(await chosen('auto:vision')).toBe('seer at alpha')
    expect(await chosen('auto:vision', picture, { exclude: ['alpha'] })).toBe('404 no_route')
  })

  test('VIRT-10 auto:long-context takes the largest window first, and only windows that leave headroom', async () => {
    expect(await chosen('auto:long-context')).toBe('wide at beta')
    expect(await chosen('auto:long-context', 'Hello', { exclude: ['beta'] })).toBe('wide at alpha')
    // About 17,000 tokens. They fit into 20,000, but not with a quarter to spare.
    const long = 'word '.repeat(10_300)
    const others = ['beta', 'alpha']
    expect(await chosen('auto:cheapest', long, { exclude: others })).toBe('ganga at indus')
    expect(await chosen('auto:long-context', long, { exclude: others })).toBe('404 no_route')
  })

  test('VIRT-11 VIRT-15 auto:sovereign takes only routes in India, and a preset without routes after residency and exclude gets 404', async () => {
    expect(await chosen('auto:sovereign')).toBe('ganga at indus')
    expect(await chosen('auto:cheapest', 'Hello', { data_policy: 'india_only' })).toBe('ganga at indus')
    expect([app.alpha.requests.length, app.beta.requests.length]).toEqual([0, 0])
    for (const [model, more] of [
      ['auto:sovereign', { exclude: ['indus'] }],
      ['auto:vision', { data_policy: 'india_only' }],
      ['auto', { exclude: ['alpha', 'beta', 'indus'] }],
    ] as const)
      expect(await chosen(model, 'Hello', more), model).toBe('404 no_route')
  })

  test('VIRT-12 VIRT-13 a preset that cannot be satisfied gets 404 no_route and nothing else is tried. An unknown preset gets 404 model_not_found', async () => {
    expect(await chosen('auto:reasoning', picture)).toBe('404 no_route')
    expect(await chosen('auto:code', 'Hello', { provider: 'indus', exclude: ['indus/ganga'] })).toBe('404 no_route')
    expect(await chosen('auto:xyz')).toBe('404 model_not_found')
    expect(dials()).toBe(0)
  })

  test('VIRT-16 VIRT-23 a preset can pick a model on a saved key, for that organisation only. data_policy and exclude apply to best too', async () => {
    const other = await app.otherOrg('Key Holder')
    const cookie = await app.signIn(other.userId, other.orgId)
    expect((await app.call('PUT', '/me/byok/beta', { key: 'sk-saved-beta-key-0002' }, { cookie })).status).toBe(200)
    for (const [model, more] of [
      ['best', {}],
      ['auto:code', {}],
      ['plain', { route: 'best' }],
    ] as const) {
      expect(await chosen(model, fence, more, other.key), model).toBe('own at beta')
      expect(await chosen(model, fence, more), model).toBe('coder at beta')
    }
    expect(await chosen('best', fence, { exclude: ['beta/own'] }, other.key)).toBe('coder at beta')
    expect(await chosen('best', fence, { exclude: ['beta'] })).toBe('plain at alpha')
    expect(await chosen('best', 'Tell me about Goa', { data_policy: 'india_only' })).toBe('ganga at indus')
  })

  test('VIRT-17 VIRT-18 VIRT-19 ROUTE-15 the prompt decides the capability, and the first reachable model of its ranking is picked', async () => {
    const cases: readonly (readonly [prompt: string, capability: string, model: string])[] = [
      [fence, 'code', 'coder'],
      ['What is the integral of sin(x) dx?', 'math', 'thinker'],
      ['नमस्ते, आप कैसे हैं?', 'multilingual', 'ganga'],
      ['வணக்கம், எப்படி இருக்கீங்க?', 'multilingual', 'ganga'],
      ['mujhe yeh batao ki kya karna chahiye', 'multilingual', 'ganga'],
      ['What are the pros and cons of remote work?', 'reasoning', 'thinker'],
      ['word '.repeat(20_000), 'long-context', 'wide'],
      ['Tell me a joke', 'general', 'plain'],
      [`आप ${fence}`, 'code', 'coder'],
    ]
    for (const [prompt, capability, model] of cases) {
      const { headers } = await ask('plain', prompt, { route: 'best' })
      expect([headers.get('x-br-route-capability'), headers.get('x-br-route-model')], prompt.slice(0, 60)).toEqual([capability, model])
    }
  })

  test('VIRT-20 VIRT-21 without a prompt, or without a reachable ranked model, route: best serves the named model as usual', async () => {
    expect(await chosen('seer', [{ type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } }], { route: 'best' })).toBe('seer at alpha')
    expect(await chosen('coder', '', { route: 'best' })).toBe('coder at beta')
    const reply = await ask('plain', 'What is the integral of sin(x) dx?', { route: 'best', exclude: ['beta'] })
    expect([reply.status, reply.json.model]).toEqual([200, 'plain'])
    expect(reply.headers.get('x-br-route-reason')).toMatch(/^fail_open/)
    expect(await chosen('best', 'What is the integral of sin(x) dx?', { exclude: ['beta'] })).toBe('plain at alpha')
    expect(await chosen('nobody', 'Hello', { route: 'best' })).toBe('404 model_not_found')
  })

  test('VIRT-22 best without any reachable model gets 404 no_route', async () => {
    for (const model of ['best', 'auto:best']) expect(await chosen(model, 'Hello', { exclude: ['alpha', 'beta', 'indus'] })).toBe('404 no_route')
  })

  test('VIRT-25 a virtual id gets 404 no_route for embeddings and 400 model_not_found for images', async () => {
    for (const id of [...virtualIds, 'best']) {
      const embeddings = await app.call('POST', '/v1/embeddings', { model: id, input: ['a'] })
      expect([embeddings.status, embeddings.json.error.code], id).toEqual([404, 'no_route'])
      const images = await app.call('POST', '/v1/images/generations', { model: id, prompt: 'a tree' })
      expect([images.status, images.json.error.code], id).toEqual([400, 'model_not_found'])
    }
    expect(dials()).toBe(0)
  })

  test('VIRT-26 the same prompt always has the same capability', async () => {
    const seen = new Set<string | null>()
    for (let count = 0; count < 5; count++) seen.add((await ask('best', 'Fix src/app.ts so that the loop ends')).headers.get('x-br-route-capability'))
    expect([...seen]).toEqual(['code'])
  })

  test('VIRT-27 VIRT-28 VIRT-29 every preset avoids windows that are too small, and models that lack tools or images that the request needs', async () => {
    const long = 'word '.repeat(12_500)
    const chat = virtualIds.filter(id => !['auto:reasoning', 'auto:vision', 'auto:agent', 'auto:code'].includes(id))
    for (const id of virtualIds) {
      const { status, json } = await ask(id, long)
      if (status === 200) expect(['wide'], id).toContain(json.model)
      else expect([status, json.error.code], id).toEqual([404, 'no_route'])
    }
    for (const id of chat) expect((await ask(id, 'Hello', { tools })).json.model, id).not.toBe('cheap')
    for (const id of chat.filter(name => name !== 'auto:sovereign')) expect((await ask(id, picture)).json.model, id).toBe('seer')
    expect(await chosen('auto:sovereign', picture)).toBe('404 no_route')
    expect(await chosen('auto:reasoning', picture)).toBe('404 no_route')
  })

  test('VIRT-30 HDR-05 HDR-06 headers say what a preset chose, streamed or not, and a call to a named model has none of them', async () => {
    for (const stream of [false, true]) {
      const auto = await ask('auto', 'Solve x^2 - 5x + 6 = 0', { stream })
      expect(family(auto.headers, 'auto')).toEqual({ 'auto-preset': 'balanced', 'auto-model': 'plain', 'auto-reason': 'cheapest_capable' })
      expect(family(auto.headers, 'route')).toEqual({
        route: 'best',
        'route-capability': 'math',
        'route-model': 'plain',
        'route-reason': 'cheapest_capable; equation',
      })
      const cheapest = await ask('auto:cheapest', 'Hello', { stream })
      expect(family(cheapest.headers, 'auto')).toEqual({ 'auto-preset': 'cheapest', 'auto-model': 'cheap', 'auto-reason': 'lowest_price' })
      expect(family(cheapest.headers, 'route')).toEqual({})
      const best = await ask('auto:best', fence, { stream })
      expect(family(best.headers, 'auto')).toEqual({ 'auto-preset': 'best', 'auto-model': 'coder', 'auto-reason': 'rank_2_of_code' })
      const named = await ask('plain', fence, { stream, route: 'best' })
      for (const { headers } of [best, named])
        expect(family(headers, 'route')).toEqual({
          route: 'best',
          'route-capability': 'code',
          'route-model': 'coder',
          'route-reason': 'rank_2_of_code; code_fence',
        })
      for (const { headers } of [named, await ask('best', fence, { stream })]) expect(family(headers, 'auto')).toEqual({})
      const plain = await ask('plain', fence, { stream })
      expect({ ...family(plain.headers, 'auto'), ...family(plain.headers, 'route') }).toEqual({})
      expect(plain.headers.get('x-br-provider')).toBe('alpha')
    }
  })

  test('a virtual id works the same through the messages and the responses API', async () => {
    const message = await app.call('POST', '/v1/messages', { model: 'auto:code', max_tokens: 50, messages: say('Hello') })
    expect([message.status, message.headers.get('x-br-auto-model')]).toEqual([200, 'coder'])
    const best = await app.call('POST', '/v1/messages', { model: 'plain', route: 'best', max_tokens: 50, messages: say([{ type: 'text', text: fence }]) })
    expect([best.status, best.headers.get('x-br-route-model'), best.headers.get('x-br-route-capability')]).toEqual([200, 'coder', 'code'])
    const seeing = {
      model: 'auto',
      max_tokens: 50,
      messages: say([{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' } }]),
    }
    expect((await app.call('POST', '/v1/messages', seeing)).headers.get('x-br-auto-model')).toBe('seer')
    const response = await app.call('POST', '/v1/responses', { model: 'auto:code', input: 'Hello' })
    expect([response.status, response.headers.get('x-br-auto-model')]).toEqual([200, 'coder'])
    const read = await app.call('POST', '/v1/responses', { model: 'best', input: say([{ type: 'input_text', text: 'What is the integral of sin(x) dx?' }]) })
    expect([read.headers.get('x-br-route-capability'), read.headers.get('x-br-route-model')]).toEqual(['math', 'thinker'])
  })

  test('ROUTE-36 exclude applies to every preset, to best and to the steps of a chain, also on failover', async () => {
    for (const id of [...virtualIds, 'best']) {
      const { status, headers } = await ask(id, fence, { exclude: ['beta'] })
      if (status === 200) expect(headers.get('x-br-provider'), id).not.toBe('beta')
    }
    app.alpha.script(() => ({ status: 500 }))
    const failed = await ask('plain', 'Hello', { exclude: ['beta'], fallbacks: ['plain', 'coder', 'auto:code'] })
    expect([failed.status, failed.json.error.code]).toEqual([502, 'all_routes_failed'])
    expect(app.beta.requests).toEqual([])
  })

  test('VIRT-14 a preset whose candidates all have an open circuit still dials one', async () => {
    app.indus.script(() => ({ status: 500 }))
    const other = await app.otherOrg('Second Witness')
    for (const token of [app.key, other.key]) for (let count = 0; count < 3; count++) expect((await ask('auto:sovereign', 'Hello', {}, token)).status).toBe(502)
    const models = (await app.call('GET', '/v1/models/ganga')).json
    expect(models.routes[0].available).toBe(false)
    const before = app.indus.requests.length
    expect((await ask('auto:sovereign')).status).toBe(502)
    app.indus.reset()
    expect(await chosen('auto:sovereign')).toBe('ganga at indus')
    expect(before).toBe(6)
  })

  test('tool calls with invalid JSON move a model down in auto:agent, and remove it if they continue', async () => {
    const called = (args: string) => ({
      body: {
        id: 'c',
        object: 'chat.completion',
        created: 1,
        model: 'x',
        choices: [
          {
            index: 0,
            message: { role: 'assistant', content: null, tool_calls: [{ id: 't', type: 'function', function: { name: 'look', arguments: args } }] },
            finish_reason: 'tool_calls',
          },
        ],
        usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
      },
      status: 200,
    })
    expect(await chosen('auto:agent', 'Hello', { tools, exclude: ['beta/plain'] })).toBe('plain at alpha')
    app.alpha.script(() => called('{"city": "Pun'))
    for (let count = 0; count < 5; count++) expect((await ask('plain', 'Hello', { tools, provider: 'alpha' })).status).toBe(200)
    app.alpha.reset()
    expect(await chosen('auto:agent', 'Hello', { tools, exclude: ['beta/plain'] })).toBe('coder at beta')
  })
})
