import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startApp, type TestApp, type TestReply, until } from '../../harness/app.ts'

const hello = [{ role: 'user', content: 'Hello there' }]
/** The gateway estimates `hello` at 8 tokens. */
const helloTokens = 8

/** One way in which a rule applies: the owner of the rule, and the caller. */
interface Caller {
  readonly token: string
  readonly headers: Readonly<Record<string, string>>
  /** The scope in a refusal. */
  readonly scope: 'key' | 'agent'
  rule(rules: object): Promise<void>
}

describe('caps of calls', () => {
  let app: TestApp
  let cookie: string
  let made = 0
  beforeAll(async () => {
    app = await startApp()
    cookie = await app.signIn()
  })
  afterAll(() => app.stop())
  beforeEach(() => {
    for (const upstream of [app.alpha, app.beta, app.indus]) upstream.reset()
  })

  const chat = ({ token, headers }: Pick<Caller, 'token' | 'headers'>, body: object = {}): Promise<TestReply> =>
    app.call('POST', '/v1/chat/completions', { model: 'alpha-only', messages: hello, ...body }, { token, headers })
  const said = ({ status, json }: TestReply) => [status, json?.error?.code]
  const ok = (reply: TestReply): void => expect(reply.status, reply.text).toBe(200)
  const ruleOfKey = async (keyId: number, rules: object): Promise<void> => ok(await app.call('PATCH', `/me/keys/${keyId}`, rules, { cookie }))
  const ruleOfAgent = async (id: number, rules: object): Promise<void> => ok(await app.call('PATCH', `/v1/me/agents/${id}`, rules))

  const callers: Record<string, () => Promise<Caller>> = {
    async 'a key'() {
      const { key, keyId } = await app.newKey()
      return { token: key, headers: {}, scope: 'key', rule: rules => ruleOfKey(keyId, rules) }
    },
    async 'an agent token'() {
      const { id, token } = await app.newAgent(`capped ${made++}`)
      return { token, headers: {}, scope: 'agent', rule: rules => ruleOfAgent(id, rules) }
    },
    async 'the key that minted an agent token'() {
      const { key, keyId } = await app.newKey()
      const { id } = await app.newAgent(`under a key ${made++}`)
      const { access_token } = (await app.call('POST', `/v1/me/agents/${id}/token`, {}, { token: key })).json
      return { token: access_token, headers: {}, scope: 'key', rule: rules => ruleOfKey(keyId, rules) }
    },
    async 'an agent that a plain key names'() {
      const { key } = await app.newKey()
      const name = `named ${made++}`
      const { id } = await app.newAgent(name)
      return { token: key, headers: { 'x-br-agent-id': name }, scope: 'agent', rule: rules => ruleOfAgent(id, rules) }
    },
  }
  const names = Object.keys(callers)
  const callerOf = (name: string): Promise<Caller> => (callers[name] as () => Promise<Caller>)()

  test.for(names)(
    'CAPS-01 %s: a call with more max_tokens than the cap is refused before a provider is called, and a call without max_tokens gets the cap',
    async name => {
      const caller = await callerOf(name)
      ok(await chat(caller, { max_tokens: 5000 }))
      await caller.rule({ max_output_tokens: 100 })
      app.alpha.reset()
      for (const body of [{ max_tokens: 101 }, { max_completion_tokens: 101 }, { max_tokens: 51, n: 2 }, { max_tokens: 101, stream: true }]) {
        const refused = await chat(caller, body)
        expect([...said(refused), refused.json.scope, refused.json.max_output_tokens]).toEqual([403, 'call_cap_exceeded', caller.scope, 100])
        expect(refused.json.error.message).toContain(`max_tokens of at most ${'n' in body ? 50 : 100}`)
      }
      expect(app.alpha.requests).toEqual([])
      ok(await chat(caller, { max_tokens: 100 }))
      ok(await chat(caller))
      ok(await chat(caller, { n: 2, max_tokens: null }))
      ok(await chat(caller, { stream: true }))
      expect(app.alpha.requests.map(request => request.json?.['max_tokens'])).toEqual([100, 100, 50, 100])
      await caller.rule({ max_output_tokens: null })
      ok(await chat(caller, { max_tokens: 5000 }))
      ok(await chat(caller))
      // Without a cap, the gateway adds no max_tokens.
      expect(app.alpha.requests.at(-1)?.json).not.toHaveProperty('max_tokens')
    },
  )

  test.for(names)(
    'CAPS-01 %s: a call that could cost more than the cap is refused, and a call without max_tokens gets as many as the cap pays for',
    async name => {
      const caller = await callerOf(name)
      // At ₹10 and ₹40 a million on alpha, the prompt costs 80 micro-rupees. The rest of the 1,000 micro-rupees pays for 23 tokens.
      await caller.rule({ max_cost_inr_per_call: 0.001 })
      for (const stream of [false, true]) {
        const refused = await chat(caller, { max_tokens: 24, stream })
        expect([...said(refused), refused.json.scope, refused.json.max_cost_inr_per_call]).toEqual([403, 'call_cap_exceeded', caller.scope, 0.001])
        expect(refused.json.error.message).toContain('₹0.001')
        expect(refused.json.error.message).toContain('max_tokens of at most 23')
      }
      const long = await chat(caller, { messages: [{ role: 'user', content: 'x'.repeat(3 * 100) }] })
      expect(said(long)).toEqual([403, 'call_cap_exceeded'])
      expect(long.json.error.message).toContain('less input')
      expect(app.alpha.requests).toEqual([])
      ok(await chat(caller, { max_tokens: 23 }))
      ok(await chat(caller))
      expect(app.alpha.requests.map(request => request.json?.['max_tokens'])).toEqual([23, 23])
      // The most expensive route that failover may reach decides: ₹30 and ₹120 a million.
      ok(await chat(caller, { model: 'test-model' }))
      const served = [app.alpha, app.beta, app.indus].flatMap(upstream => upstream.requests).at(-1)
      expect([app.alpha, app.beta, app.indus].map(upstream => upstream.requests.at(-1)?.json?.['max_tokens'])).toContain(6)
      expect(served).toBeDefined()
      // With both rules, the stricter one applies.
      await caller.rule({ max_output_tokens: 9 })
      ok(await chat(caller))
      expect(app.alpha.requests.at(-1)?.json?.['max_tokens']).toBe(9)
      expect(helloTokens * 10 + 23 * 40).toBeLessThanOrEqual(1000)
    },
  )

  test('CAPS-01 for embeddings, the cost cap applies to the price of the input', async () => {
    const { key, keyId } = await app.newKey()
    // At ₹6 a million on the most expensive route, 100 tokens cost 600 micro-rupees.
    await ruleOfKey(keyId, { max_cost_inr_per_call: 0.0006, max_output_tokens: 1 })
    const embed = (input: unknown) => app.call('POST', '/v1/embeddings', { model: 'test-embed', input }, { token: key })
    ok(await embed('x'.repeat(300)))
    const refused = await embed(['x'.repeat(300), 'xyz'])
    expect(said(refused)).toEqual([403, 'call_cap_exceeded'])
    expect(refused.json.error.message).toContain('less input')
  })

  test('CAPS-01 a capped call is charged at most its cap, and its other fields are unchanged', async () => {
    const { key, keyId } = await app.newKey()
    await ruleOfKey(keyId, { max_cost_inr_per_call: 0.001 })
    await app.setBudget('key', keyId, 1000)
    const spentOf = async (): Promise<number> => (await app.call('GET', '/v1/me/budgets', undefined, { token: key })).json.budgets[0].spent_inr
    app.alpha.script(() => ({ usage: { prompt_tokens: 8, completion_tokens: 500, total_tokens: 508 } }))
    ok(await chat({ token: key, headers: {} }, { temperature: 0.5, seed: 7 }))
    expect(app.alpha.requests[0]?.json).toMatchObject({ model: 'alpha-upstream', messages: hello, temperature: 0.5, seed: 7, max_tokens: 23 })
    const before = await spentOf()
    ok(await chat({ token: key, headers: {} }))
    expect((await spentOf()) - before).toBeCloseTo(0.001, 9)
  })

  test.for(names)('CAPS-01 %s: concurrent calls count until they end, and streams until their last byte', async name => {
    const caller = await callerOf(name)
    await caller.rule({ max_concurrency: 2 })
    app.alpha.script(request => (request.json?.['stream'] === true ? { holdAfterChunks: 2 } : { hold: true }))
    const plain = chat(caller)
    const stream = chat(caller, { stream: true })
    await app.alpha.arrived(2)
    for (const body of [{}, { stream: true }]) {
      const refused = await chat(caller, body)
      expect([...said(refused), refused.json.scope, refused.json.limit]).toEqual([429, 'concurrency_limit_reached', caller.scope, 2])
      expect([refused.headers.get('retry-after'), refused.headers.get('x-should-retry')]).toEqual(['1', 'true'])
      expect(refused.json.error.message).toContain('2 calls concurrently')
    }
    // Other callers are not affected.
    app.alpha.script({})
    ok(await chat({ token: app.key, headers: {} }))
    expect(app.alpha.requests).toHaveLength(3)
    app.alpha.release()
    for (const reply of await Promise.all([plain, stream])) ok(reply)
    app.alpha.reset()
    const again = await Promise.all([chat(caller), chat(caller, { stream: true })])
    for (const reply of again) ok(reply)
    await caller.rule({ max_concurrency: null })
    for (const reply of await Promise.all(Array.from({ length: 5 }, () => chat(caller)))) ok(reply)
  })

  test('CAPS-01 every end of a call frees its place: a refusal by the provider, a broken stream, a disconnect, a spent budget', async () => {
    const { key, keyId } = await app.newKey({ daily: 100 })
    const caller = { token: key, headers: {} }
    await ruleOfKey(keyId, { max_concurrency: 1 })
    const next = async (): Promise<void> => {
      app.alpha.reset()
      await until(async () => (await chat(caller)).status === 200, 2000)
    }
    app.alpha.script({ status: 400, body: { error: { message: 'no', type: 'invalid_request_error', code: null } } })
    expect((await chat(caller)).status).toBe(400)
    await next()
    app.alpha.script(Array.from({ length: 3 }, () => ({ status: 500 })))
    expect((await chat(caller)).status).toBe(502)
    await next()
    app.alpha.script({ breakAfterChunks: 1 })
    expect((await chat(caller, { stream: true })).text).toContain('upstream_stream_error')
    await next()
    for (const stream of [false, true]) {
      const controller = new AbortController()
      app.alpha.script(stream ? { holdAfterChunks: 1 } : { hang: true })
      const gone = app
        .call('POST', '/v1/chat/completions', { model: 'alpha-only', messages: hello, stream }, { token: key, signal: controller.signal })
        .catch(() => null)
      await app.alpha.arrived(1)
      expect(said(await chat(caller))).toEqual([429, 'concurrency_limit_reached'])
      controller.abort()
      await gone
      await next()
    }
    await app.setBudget('key', keyId, 0.000001)
    for (let i = 0; i < 3; i++) expect(said(await chat(caller))).toEqual([429, 'budget_exceeded'])
    await app.setBudget('key', keyId, null)
    await next()
  })

  test('LIM-11 a call that a cost cap or a cap of concurrent calls refuses does not count against the daily limit', async () => {
    const { key, keyId } = await app.newKey({ daily: 2 })
    const caller = { token: key, headers: {} }
    await ruleOfKey(keyId, { max_concurrency: 1, max_output_tokens: 50 })
    app.alpha.script({ hold: true })
    const running = chat(caller)
    await app.alpha.arrived(1)
    for (let i = 0; i < 5; i++) expect(said(await chat(caller))).toEqual([429, 'concurrency_limit_reached'])
    for (let i = 0; i < 5; i++) expect(said(await chat(caller, { max_tokens: 51 }))).toEqual([403, 'call_cap_exceeded'])
    app.alpha.release()
    ok(await running)
    ok(await chat(caller))
    expect(said(await chat(caller))).toEqual([429, 'daily_limit_reached'])
  })

  test('a rule of an agent cannot exceed the rule of its key', async () => {
    const { key, keyId } = await app.newKey()
    const { id } = await app.newAgent('wide')
    await ruleOfKey(keyId, { max_output_tokens: 10, max_concurrency: 1 })
    await ruleOfAgent(id, { max_output_tokens: 100, max_concurrency: 5 })
    const { access_token } = (await app.call('POST', `/v1/me/agents/${id}/token`, {}, { token: key })).json
    for (const caller of [
      { token: access_token, headers: {} },
      { token: key, headers: { 'x-br-agent-id': 'wide' } },
    ]) {
      app.alpha.reset()
      expect((await chat(caller, { max_tokens: 11 })).json.scope).toBe('key')
      app.alpha.script({ hold: true })
      const running = chat(caller)
      await app.alpha.arrived(1)
      expect((await chat(caller)).json).toMatchObject({ error: { code: 'concurrency_limit_reached' }, scope: 'key', limit: 1 })
      app.alpha.release()
      ok(await running)
      expect(app.alpha.requests.at(-1)?.json?.['max_tokens']).toBe(10)
    }
  })
})
