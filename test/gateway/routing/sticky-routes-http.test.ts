import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { defaultOperatorFile, startApp, type TestApp, type TestReply } from '../../harness/app.ts'
import { movableClock } from '../../harness/clock.ts'

const price = (input: number, output: number, cached?: number) => ({
  input_inr_per_mtok: input,
  output_inr_per_mtok: output,
  ...(cached === undefined ? {} : { cached_input_inr_per_mtok: cached }),
  source: 'test',
  as_of: '2026-01-01',
})
const on = (provider: string, input: number, output: number, cached?: number, more: object = {}) => ({
  provider,
  upstream_model: `${provider}-upstream`,
  ...price(input, output, cached),
  ...more,
})
const chat = (id: string, routes: object[], more: object = {}) => ({ id, kind: 'chat', context_length: 100_000, tools: true, routes, ...more })
const models = [
  chat('twin', [on('alpha', 10, 40, 1), on('beta', 10, 40, 1)]),
  /** Beta is dearer by less than a tenth, so that alpha is first by price. */
  chat('pair', [on('alpha', 10, 40, 1), on('beta', 10.5, 40, 1)]),
  chat('lasting', [on('alpha', 10, 40, 1), on('beta', 10.5, 40, 1, { cache_ttl_seconds: 1800 })]),
  chat('marked', [on('alpha', 10, 40, 1), on('beta', 10.5, 40, 1, { cache_write_inr_per_mtok: 12 })]),
  /** Beta costs twice as much, unless its cache has the prompt. */
  chat('dear', [on('alpha', 10, 40, 1), on('beta', 20, 80, 2)]),
  chat('uncached', [on('alpha', 10, 40), on('beta', 10.5, 40)]),
  chat('easy', [on('alpha', 1, 1)]),
  chat('deep', [on('beta', 30, 120, 3)], { modalities: ['text', 'image'] }),
]
const rankings = { tiers: { good: [], best: ['deep'] } }
const hi = [{ role: 'user', content: 'Hi' }]
const later = (first: string) => [
  { role: 'user', content: first },
  { role: 'assistant', content: 'Yes?' },
  { role: 'user', content: 'Go on' },
]
const broken = { status: 500, body: { error: { message: 'down' } } }
const cached = { usage: { prompt_tokens: 12, completion_tokens: 5, total_tokens: 17, prompt_tokens_details: { cached_tokens: 10 } } }

describe('routes that keep a cache', () => {
  const clock = movableClock()
  const operatorFile = (urls: Parameters<typeof defaultOperatorFile>[0]) => ({ ...defaultOperatorFile(urls), models, rankings })
  let app: TestApp
  /** Another process of the same installation, as far as routing sees it: it shares nothing with the first one. */
  let second: TestApp
  let owner: string
  let named = 0
  beforeAll(async () => {
    app = await startApp({ clock, operatorFile, env: { CIRCUIT_FAILURES: '3' } })
    second = await startApp({ operatorFile })
    owner = await app.signIn()
  })
  afterAll(async () => {
    await app.stop()
    await second.stop()
  })
  beforeEach(() => {
    for (const upstream of [app.alpha, app.beta]) upstream.reset()
    // Measurements and circuits of the test before are forgotten.
    clock.advance(30 * 60_000)
  })
  const ask = (body: object, headers: Record<string, string> = {}, token = app.key) =>
    app.call('POST', '/v1/chat/completions', { messages: hi, ...body }, { token, headers })
  const seen = ({ status, headers, json }: TestReply) => [status === 200 ? headers.get('x-br-provider') : json.error.code, headers.get('x-br-sticky')]
  const said = async (reply: Promise<TestReply>) => seen(await reply)
  const newName = () => `conversation-${++named}`
  /** Has a new conversation served by beta, because alpha fails once. */
  async function onBeta(model: string): Promise<string> {
    const key = newName()
    app.alpha.script([broken])
    expect(await said(ask({ model, prompt_cache_key: key }))).toEqual(['beta', 'new'])
    return key
  }
  const say = (model: string, key: string, more: object = {}) => said(ask({ model, prompt_cache_key: key, ...more }))
  /** Has the first provider measured as slower than the second one. */
  async function slower(slow: 'alpha' | 'beta', fast: 'alpha' | 'beta'): Promise<void> {
    app[slow].script([{ hold: true }])
    const before = app[slow].requests.length
    const held = ask({ model: 'twin', provider: slow })
    await app[slow].arrived(before + 1)
    for (let count = 0; count < 2; count++) expect((await ask({ model: 'twin', provider: fast })).status).toBe(200)
    app[slow].release()
    expect((await held).status).toBe(200)
  }

  test('STICK-01 a conversation of 40 turns stays on one of two equal routes by latency, while other calls go where it is faster', async () => {
    const turns: (string | null)[][] = []
    const others: (string | null)[] = []
    const key = newName()
    for (let turn = 0; turn < 40; turn++) {
      await (turn % 4 < 2 ? slower('alpha', 'beta') : slower('beta', 'alpha'))
      turns.push(seen(await ask({ model: 'twin', optimize: 'latency', prompt_cache_key: key })))
      others.push((await ask({ model: 'twin', optimize: 'latency' })).headers.get('x-br-provider'))
    }
    const home = turns[0]?.[0]
    expect(turns[0]?.[1]).toBe('new')
    expect(turns.filter(([provider]) => provider === home).length).toBeGreaterThanOrEqual(38)
    expect(turns.slice(1).every(([provider, state]) => provider === home && state === 'hit')).toBe(true)
    expect(new Set(others).size).toBe(2)
  })

  test('STICK-01 after one outage a conversation stays on the route that has served it', async () => {
    const key = newName()
    const first = (await ask({ model: 'twin', optimize: 'latency', prompt_cache_key: key })).headers.get('x-br-provider') as 'alpha' | 'beta'
    app[first].script([broken])
    const states: (string | null)[][] = []
    for (let turn = 0; turn < 6; turn++) states.push(await say('twin', key, { optimize: 'latency' }))
    const second = first === 'alpha' ? 'beta' : 'alpha'
    expect(states).toEqual([[second, 'moved'], ...Array.from({ length: 5 }, () => [second, 'hit'])])
  })

  test('STICK-01 a conversation without an id is known by its first texts, once the cache of its route was used', async () => {
    app.alpha.script([broken])
    // The first turn reports no use of a cache.
    expect(await said(ask({ model: 'pair', messages: [{ role: 'user', content: 'Cold start' }] }))).toEqual(['beta', null])
    expect(await said(ask({ model: 'pair', messages: later('Cold start') }))).toEqual(['alpha', null])
    app.alpha.script([broken])
    app.beta.script([cached])
    expect(await said(ask({ model: 'pair', messages: later('Warm start') }))).toEqual(['beta', 'new'])
    expect(await said(ask({ model: 'pair', messages: later('Warm start') }))).toEqual(['beta', 'hit'])
    const streamed = await ask({ model: 'pair', messages: later('Warm start'), stream: true })
    expect([streamed.headers.get('x-br-provider'), streamed.headers.get('x-br-sticky')]).toEqual(['beta', 'hit'])
    // Another conversation, another model, another organisation and a call without an earlier answer begin by price.
    expect(await said(ask({ model: 'pair', messages: later('Other start') }))).toEqual(['alpha', null])
    expect(await said(ask({ model: 'lasting', messages: later('Warm start') }))).toEqual(['alpha', null])
    expect(await said(ask({ model: 'pair', messages: [{ role: 'user', content: 'Warm start' }] }))).toEqual(['alpha', null])
    const other = await app.otherOrg('Sticky Org')
    expect(await said(ask({ model: 'pair', messages: later('Warm start') }, {}, other.key))).toEqual(['alpha', null])
  })

  test('the first of the ids of clients names the conversation, on every API of text, and a sub-agent has one of its own', async () => {
    const ids: readonly Record<string, string>[] = [
      { 'x-session-affinity': 'ses_1' },
      { 'thread-id': '0199-thread', 'session-id': 'other' },
      { 'x-claude-code-session-id': '0199-claude' },
      { session_id: '0199-older' },
      { 'x-session-id': 'ses_2' },
    ]
    for (const headers of ids) {
      app.alpha.script([broken])
      expect(await said(ask({ model: 'pair' }, headers)), JSON.stringify(headers)).toEqual(['beta', 'new'])
      expect(await said(ask({ model: 'pair' }, headers)), JSON.stringify(headers)).toEqual(['beta', 'hit'])
      expect(await said(ask({ model: 'pair' }, { ...headers, 'x-claude-code-agent-id': 'sub-1' })), JSON.stringify(headers)).toEqual(['alpha', 'new'])
      expect(await said(ask({ model: 'pair', prompt_cache_key: newName() }, headers)), JSON.stringify(headers)).toEqual(['alpha', 'new'])
    }
    const headers = { 'x-session-id': 'of-every-api' }
    app.alpha.script([broken])
    expect(await said(app.call('POST', '/v1/messages', { model: 'pair', max_tokens: 20, messages: hi }, { headers }))).toEqual(['beta', 'new'])
    expect(await said(app.call('POST', '/v1/responses', { model: 'pair', input: 'Hi' }, { headers }))).toEqual(['beta', 'hit'])
    // A text that is no id is ignored.
    expect(await said(ask({ model: 'pair' }, { 'x-session-id': 'x'.repeat(300) }))).toEqual(['alpha', null])
  })

  test('STICK-01 a dearer route is kept while its cache makes the prompt cheaper, and left when it is cold', async () => {
    const cold = await onBeta('dear')
    expect(await say('dear', cold)).toEqual(['alpha', 'moved'])
    const warm = newName()
    app.alpha.script([broken])
    app.beta.script([cached, cached])
    expect(await say('dear', warm)).toEqual(['beta', 'new'])
    expect(await say('dear', warm)).toEqual(['beta', 'hit'])
    // Nothing of this turn comes from the cache, so the next one is expected to be cold.
    expect(await say('dear', warm)).toEqual(['beta', 'hit'])
    expect(await say('dear', warm)).toEqual(['alpha', 'moved'])
    expect(await say('dear', warm)).toEqual(['alpha', 'hit'])
  })

  test('STICK-01 the rules of one call keep it elsewhere, and the conversation stays', async () => {
    const key = await onBeta('pair')
    expect(await say('pair', key, { exclude: ['beta'] })).toEqual(['alpha', null])
    expect(await say('pair', key, { provider: 'alpha' })).toEqual(['alpha', null])
    expect(await say('pair', key, { fallbacks: [{ model: 'pair', provider: 'alpha' }] })).toEqual(['alpha', null])
    expect((await ask({ model: 'pair', prompt_cache_key: key, data_policy: 'india_only' })).status).not.toBe(200)
    expect(await say('pair', key)).toEqual(['beta', 'hit'])
  })

  test('STICK-01 a conversation leaves a route that its provider limits, whose circuit is open, or that changed rules do not allow', async () => {
    const limited = await onBeta('pair')
    const waiting = await onBeta('pair')
    app.beta.script([{ status: 429, body: { error: { message: 'slow down' } } }])
    expect(await say('pair', limited)).toEqual(['alpha', 'moved'])
    const before = app.beta.requests.length
    expect(await say('pair', waiting)).toEqual(['alpha', 'moved'])
    expect(app.beta.requests).toHaveLength(before)

    clock.advance(2 * 60_000)
    const open = await onBeta('pair')
    app.beta.script([broken, broken, broken])
    for (let count = 0; count < 3; count++) expect((await ask({ model: 'pair', provider: 'beta' })).status).toBe(502)
    expect(await say('pair', open)).toEqual(['alpha', 'moved'])

    clock.advance(10 * 60_000)
    expect((await ask({ model: 'pair', provider: 'beta' })).status).toBe(200)
    const ruled = await onBeta('pair')
    const steps = [
      { model: 'pair', provider: 'alpha' },
      { model: 'pair', provider: 'beta' },
    ]
    expect((await app.call('PUT', '/me/routing/pair', { steps }, { cookie: owner })).status).toBe(200)
    expect(await say('pair', ruled)).toEqual(['alpha', null])
    expect((await app.call('DELETE', '/me/routing/pair', undefined, { cookie: owner })).status).toBe(200)
    expect(await say('pair', ruled)).toEqual(['alpha', 'new'])
    const { key: token } = await app.newKey()
    const kept = await onBeta('pair')
    expect(await said(ask({ model: 'pair', prompt_cache_key: kept }, {}, token))).toEqual(['beta', 'hit'])
  })

  test('a conversation on a key of its own does not change to the account of the platform after one failure', async () => {
    const save = (id: string, body: object) => app.call('PUT', `/me/byok/${id}`, body, { cookie: owner })
    app.alpha.script(({ path }) => (path.endsWith('/models') ? { body: { data: [{ id: 'alpha-upstream' }] } } : {}))
    expect((await save('alpha', { key: 'sk-own-alpha-key-000001', always_use: true })).status).toBe(200)
    app.alpha.reset()
    try {
      const key = newName()
      app.alpha.script([broken, broken])
      expect(await say('pair', key)).toEqual(['beta', 'new'])
      expect(await say('pair', key)).toEqual(['alpha', 'moved'])
      expect(app.alpha.requests.at(-1)?.headers.authorization).toBe('Bearer sk-own-alpha-key-000001')
    } finally {
      await app.call('DELETE', '/me/byok/alpha', undefined, { cookie: owner })
    }
  })

  test('a conversation is remembered for as long as the provider keeps its prompt, from the last call on', async () => {
    const minutes = (count: number) => clock.advance(count * 60_000)
    const short = await onBeta('pair')
    minutes(4)
    expect(await say('pair', short)).toEqual(['beta', 'hit'])
    minutes(4)
    expect(await say('pair', short)).toEqual(['beta', 'hit'])
    minutes(6)
    expect(await say('pair', short)).toEqual(['alpha', 'new'])
    const long = await onBeta('lasting')
    minutes(29)
    expect(await say('lasting', long)).toEqual(['beta', 'hit'])
    minutes(31)
    expect(await say('lasting', long)).toEqual(['alpha', 'new'])
    const headers = { 'x-session-id': newName() }
    const hour = { type: 'text', text: 'Hi', cache_control: { type: 'ephemeral', ttl: '1h' } }
    const marked = () => said(app.call('POST', '/v1/messages', { model: 'marked', max_tokens: 20, messages: [{ role: 'user', content: [hour] }] }, { headers }))
    app.alpha.script([broken])
    expect(await marked()).toEqual(['beta', 'new'])
    minutes(55)
    expect(await marked()).toEqual(['beta', 'hit'])
  })

  test('a route without a cheaper price for its cache keeps no conversation, and a model with one route says nothing', async () => {
    const key = newName()
    app.alpha.script([broken])
    expect(await say('uncached', key)).toEqual(['beta', null])
    expect(await say('uncached', key)).toEqual(['alpha', null])
    expect(await say('easy', key)).toEqual(['alpha', null])
    expect(await say('easy', key)).toEqual(['alpha', null])
  })

  test('STICK-01 every process puts equal routes in one order for one conversation, and conversations are spread over them', async () => {
    const places: (string | null)[] = []
    for (let count = 0; count < 12; count++) {
      const body = { model: 'twin', prompt_cache_key: `spread-${count}`, messages: hi }
      const here = (await ask(body)).headers.get('x-br-provider')
      expect((await second.call('POST', '/v1/chat/completions', body)).headers.get('x-br-provider')).toBe(here)
      places.push(here)
    }
    expect(new Set(places).size).toBe(2)
    // Without an id the order is that of the catalog.
    expect((await ask({ model: 'twin' })).headers.get('x-br-provider')).toBe('alpha')
  })

  const hard = 'Prove rigorously, step by step, that the theorem holds: derive the integral of x^2 and analyse the proof.'
  const picture = { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } }
  const picked = async (reply: Promise<TestReply>) => {
    const { headers } = await reply
    return [headers.get('x-br-auto-model'), headers.get('x-br-auto-reason'), headers.get('x-br-sticky')]
  }

  test('STICK-02 a conversation keeps the model that auto has picked, until a call needs what the model lacks', async () => {
    for (const start of [{ prompt_cache_key: newName() }, {}]) {
      const turn = (last: unknown) =>
        picked(
          ask({
            model: 'auto',
            ...start,
            messages: [
              { role: 'user', content: `Hello ${JSON.stringify(start)}` },
              { role: 'assistant', content: 'Yes?' },
              { role: 'user', content: last },
            ],
          }),
        )
      expect((await turn('Say hello'))[0]).toBe('easy')
      for (let count = 0; count < 5; count++) expect(await turn(count % 2 === 0 ? hard : 'Thanks')).toEqual(['easy', 'same_conversation', 'hit'])
      // The same words in a conversation of their own get the better model.
      expect((await picked(ask({ model: 'auto', prompt_cache_key: newName(), messages: [{ role: 'user', content: hard }] })))[0]).toBe('deep')
      const [model, reason, state] = await turn([{ type: 'text', text: 'What is this?' }, picture])
      expect([model, state]).toEqual(['deep', 'moved'])
      expect(reason).not.toBe('same_conversation')
      expect(await turn('Thanks')).toEqual(['deep', 'same_conversation', 'hit'])
    }
  })

  test('STICK-02 the other presets keep their model too, and leave it when its only route has an open circuit or is excluded', async () => {
    const key = newName()
    const fastest = (more: object = {}) => picked(ask({ model: 'auto:fastest', prompt_cache_key: key, ...more }))
    const [first] = await fastest()
    for (let turn = 0; turn < 25; turn++) expect(await fastest()).toEqual([first, 'same_conversation', 'hit'])
    const auto = newName()
    const ofAuto = (more: object = {}) => picked(ask({ model: 'auto', prompt_cache_key: auto, ...more }))
    expect((await ofAuto())[0]).toBe('easy')
    const [apart, , state] = await ofAuto({ exclude: ['alpha'] })
    expect(apart).not.toBe('easy')
    expect(state).toBe(null)
    expect(await ofAuto()).toEqual(['easy', 'same_conversation', 'hit'])
    app.alpha.script([broken, broken, broken])
    for (let count = 0; count < 3; count++) expect((await ask({ model: 'easy' })).status).toBe(502)
    const [moved, , said] = await ofAuto()
    expect(moved).not.toBe('easy')
    expect(said).toBe('moved')
  })
})
