import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type Clock, systemClock } from '../../../src/platform/clock.ts'
import { startApp, type TestApp } from '../../harness/app.ts'
import type { UpstreamServer } from '../../harness/upstream-server.ts'

const hello = [{ role: 'user', content: 'Hello' }]

/** One model on three providers: alpha at ₹50, beta at ₹100, indus at ₹150. Indus and beta have a quality rank. */
function file(urls: { alpha: string; beta: string; indus: string }): object {
  const provider = (id: string, base_url: string, residency: string) => ({ id, base_url, residency, auth: 'bearer' })
  const route = (id: string, inr: number, more: object = {}) => ({
    provider: id,
    input_inr_per_mtok: inr,
    output_inr_per_mtok: 0,
    source: 'test',
    as_of: '2026-01-01',
    ...more,
  })
  const routes = [route('alpha', 50), route('beta', 100, { rank: 2 }), route('indus', 150, { rank: 1 })]
  const halfRanked = [route('alpha', 1), route('beta', 2), route('indus', 3, { rank: 5 })]
  const model = (id: string, of: readonly object[]) => ({ id, kind: 'chat', context_length: 8000, tools: true, routes: of })
  return {
    providers: [provider('alpha', urls.alpha, 'global'), provider('beta', urls.beta, 'global'), provider('indus', urls.indus, 'india')],
    models: [model('m', routes), model('only-alpha', [route('alpha', 1)]), model('only-beta', [route('beta', 2)]), model('half-ranked', halfRanked)],
  }
}

describe('optimize over HTTP', () => {
  let app: TestApp
  // The test sets how long each call takes, so a busy machine has no effect.
  let elapsedMs = 0
  const clock: Clock = { ...systemClock, monotonicMs: () => elapsedMs }
  // The averages belong to the process, so every test starts its own.
  beforeEach(async () => {
    app = await startApp({ operatorFile: file, clock, env: { CIRCUIT_FAILURES: '100' } })
  })
  afterEach(() => app.stop())

  const ask = (more: object = {}, model = 'm') => app.call('POST', '/v1/chat/completions', { model, messages: hello, ...more })
  const served = async (more: object = {}, model = 'm') => (await ask(more, model)).headers.get('x-br-provider')
  const first = async (more: object) => (await app.call('POST', '/me/route/preview', { model: 'm', messages: hello, ...more })).json.provider
  /** Makes a call that the provider answers after the given time. */
  async function slowly(upstream: UpstreamServer, provider: string, ms: number, model = 'm') {
    upstream.script(() => {
      elapsedMs += ms
      return {}
    })
    expect((await ask({ provider }, model)).status).toBe(200)
    upstream.reset()
  }

  test('ROUTE-03 latency dials the route with the lowest moving average first. Unmeasured routes come after it, and are tried first now and then', async () => {
    await slowly(app.alpha, 'alpha', 150)
    await slowly(app.indus, 'indus', 20)
    expect(await first({ optimize: 'latency' })).toBe('indus')
    const candidates = (await app.call('POST', '/me/route/preview', { model: 'm', messages: hello, optimize: 'latency' })).json.candidates
    expect(candidates.map((candidate: { provider: string }) => candidate.provider)).toEqual(['indus', 'alpha', 'beta'])
    const counts: Record<string, number> = {}
    for (let count = 0; count < 20; count++) {
      const provider = String(await served({ optimize: 'latency' }))
      counts[provider] = (counts[provider] ?? 0) + 1
    }
    expect(counts['alpha']).toBeUndefined()
    expect(counts['beta']).toBeGreaterThanOrEqual(1)
  })

  test('ROUTE-04 uptime dials the route with the fewest failures first', async () => {
    app.alpha.script([{ status: 500 }, {}, {}])
    for (let count = 0; count < 3; count++) await ask({ provider: 'alpha' })
    app.beta.script([{ status: 500 }, { status: 500 }, {}])
    for (let count = 0; count < 3; count++) await ask({ provider: 'beta' })
    for (let count = 0; count < 3; count++) await ask({ provider: 'indus' })
    const { candidates } = (await app.call('POST', '/me/route/preview', { model: 'm', messages: hello, optimize: 'uptime' })).json
    expect(candidates.map((candidate: { provider: string }) => candidate.provider)).toEqual(['indus', 'alpha', 'beta'])
    expect(await served({ optimize: 'uptime' })).toBe('indus')
  })

  test('ROUTE-05 throughput dials the route with room in its rate limit and low latency first', async () => {
    const left = (share: number) => ({ headers: { 'x-ratelimit-remaining-requests': String(share), 'x-ratelimit-limit-requests': '100' } })
    app.alpha.script(left(2))
    app.beta.script({ headers: { 'anthropic-ratelimit-output-tokens-remaining': '95', 'anthropic-ratelimit-output-tokens-limit': '100' } })
    app.indus.script(left(50))
    for (const provider of ['alpha', 'beta', 'indus']) await ask({ provider })
    expect(await served({ optimize: 'throughput' })).toBe('beta')
    app.beta.script(left(1))
    await ask({ provider: 'beta' })
    expect(await served({ optimize: 'throughput' })).toBe('indus')
    // A provider that answers 429 has no room left, even if an earlier reply stated some.
    app.beta.script([left(90), { status: 429 }])
    for (let count = 0; count < 2; count++) await ask({ provider: 'beta' })
    app.indus.script(left(30))
    await ask({ provider: 'indus' })
    expect(await served({ optimize: 'throughput' })).toBe('indus')
  })

  test('ROUTE-06 quality follows the curated rank, and unranked routes follow by latency', async () => {
    await slowly(app.alpha, 'alpha', 100, 'half-ranked')
    await slowly(app.beta, 'beta', 10, 'half-ranked')
    await slowly(app.indus, 'indus', 150, 'half-ranked')
    const half = (await app.call('POST', '/me/route/preview', { model: 'half-ranked', messages: hello, optimize: 'quality' })).json.candidates
    expect(half.map((candidate: { provider: string }) => candidate.provider)).toEqual(['indus', 'beta', 'alpha'])
    const { candidates } = (await app.call('POST', '/me/route/preview', { model: 'm', messages: hello, optimize: 'quality' })).json
    expect(candidates.map((candidate: { provider: string }) => candidate.provider)).toEqual(['indus', 'beta', 'alpha'])
    expect(await served({ optimize: 'quality' })).toBe('indus')
  })

  test('ROUTE-07 auto puts reliability first, and then weighs latency against price', async () => {
    for (const provider of ['alpha', 'beta', 'indus']) await ask({ provider })
    expect(await served({ optimize: 'auto' })).toBe('alpha')
    app.alpha.script([{ status: 500 }, { status: 500 }, { status: 500 }])
    for (let count = 0; count < 3; count++) await ask({ provider: 'alpha' })
    expect(await served({ optimize: 'auto' })).not.toBe('alpha')
    await slowly(app.beta, 'beta', 200)
    await slowly(app.beta, 'beta', 200)
    expect(await served({ optimize: 'auto' })).toBe('indus')
  })

  test('ROUTE-10 ROUTE-11 weights take precedence over optimize, and an axis that is missing or zero has no effect', async () => {
    await slowly(app.alpha, 'alpha', 100)
    await slowly(app.beta, 'beta', 10)
    await slowly(app.indus, 'indus', 200)
    expect(await served({ optimize: 'quality', optimize_weights: { price: 1 } })).toBe('alpha')
    expect(await served({ optimize: 'price', optimize_weights: { latency: 1, price: 0 } })).toBe('beta')
    expect(await served({ optimize: 'price', optimize_weights: { latency: 5, price: 0, uptime: 0, throughput: 0 } })).toBe('beta')
  })

  test('ROUTE-13 with weights that are all zero, or not an object, the default applies: the lowest price', async () => {
    for (const weights of [{ price: 0, latency: 0 }, {}, { latency: -1 }, 'latency', 5, [], true, null])
      expect(await served({ optimize: 'price', optimize_weights: weights }), JSON.stringify(weights)).toBe('alpha')
    expect(await served({ optimize_weights: { latency: 0 } })).toBe('alpha')
  })

  test('ROUTE-49 null counts as absent in every router field', async () => {
    const fields = [
      'optimize',
      'optimize_weights',
      'route',
      'provider',
      'data_policy',
      'exclude',
      'upstream_key',
      'fallbacks',
      'image_optimize',
      'image_max_edge',
    ]
    const reply = await ask(Object.fromEntries(fields.map(name => [name, null])))
    expect([reply.status, reply.headers.get('x-br-provider')]).toEqual([200, 'alpha'])
    expect(Object.keys(app.alpha.requests[0]?.json ?? {}).filter(name => fields.includes(name))).toEqual([])
  })

  test('ROUTE-50 image_optimize is auto or off, and any other value gets 400 bad_request before any dial', async () => {
    for (const value of ['on', true, 1, {}, '']) expect((await ask({ image_optimize: value })).json.error?.code, JSON.stringify(value)).toBe('bad_request')
    expect(app.alpha.requests).toEqual([])
    for (const value of ['auto', 'off']) expect((await ask({ image_optimize: value })).status).toBe(200)
  })

  test('ROUTE-53 router fields work on the messages API and never reach the provider', async () => {
    const message = (more: object) => app.call('POST', '/v1/messages', { model: 'm', max_tokens: 20, messages: hello, ...more })
    expect((await message({ data_policy: 'india_only' })).headers.get('x-br-provider')).toBe('indus')
    expect((await message({ provider: 'beta' })).headers.get('x-br-provider')).toBe('beta')
    expect((await message({ exclude: ['alpha'] })).headers.get('x-br-provider')).toBe('beta')
    expect((await message({ optimize: 'quality' })).headers.get('x-br-provider')).toBe('indus')
    expect((await message({ provider: 'beta', upstream_key: 'sk-of-the-caller' })).status).toBe(200)
    expect(app.beta.requests.at(-1)?.headers['authorization']).toBe('Bearer sk-of-the-caller')
    const none = await message({ data_policy: 'india_only', exclude: ['indus'] })
    expect(none.status).toBe(422)
    expect((await message({ data_policy: 'moon_only' })).status).toBe(400)
    const names = ['data_policy', 'provider', 'exclude', 'optimize', 'upstream_key']
    for (const upstream of [app.alpha, app.beta, app.indus])
      for (const { json } of upstream.requests) expect(Object.keys(json ?? {}).filter(name => names.includes(name))).toEqual([])
  })

  test('VIRT-04 auto:fastest takes the route with the lowest measured latency, whatever its price', async () => {
    await slowly(app.alpha, 'alpha', 200)
    await slowly(app.indus, 'indus', 100)
    await slowly(app.alpha, 'alpha', 150, 'only-alpha')
    await slowly(app.beta, 'beta', 5, 'only-beta')
    expect((await ask({}, 'auto:fastest')).headers.get('x-br-auto-model')).toBe('only-beta')
    await slowly(app.beta, 'beta', 5)
    for (let count = 0; count < 4; count++) await slowly(app.beta, 'beta', 250, 'only-beta')
    const reply = await ask({}, 'auto:fastest')
    expect([reply.headers.get('x-br-auto-model'), reply.headers.get('x-br-provider')]).toEqual(['m', 'beta'])
  })
})
