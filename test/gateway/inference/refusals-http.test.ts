/** How the gateway handles refusals of providers: whose key it was, whether another route is tried, and whose message the caller gets. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp, type TestReply } from '../../harness/app.ts'
import type { UpstreamScript } from '../../harness/upstream-server.ts'
import { usageRows } from '../../harness/usage-rows.ts'

const messages = [{ role: 'user', content: 'Hello there' }]
const savedKey = 'sk-saved-by-the-organisation-0001'
const empty = [
  { status: 402, body: { error: { message: 'Please top up at beta.example', code: 'payment_required' } } },
  { status: 429, body: { error: { message: 'You exceeded your current quota', code: 'insufficient_quota' } } },
] as const

describe('refusals of providers', () => {
  let app: TestApp
  let cookie: string
  beforeAll(async () => {
    app = await startApp({ dialects: true, env: { CIRCUIT_FAILURES: '3' } })
    cookie = await app.signIn()
  })
  afterAll(() => app.stop())
  afterEach(async () => {
    for (const id of ['alpha', 'beta']) await app.call('DELETE', `/me/byok/${id}`, undefined, { cookie })
    for (const upstream of [app.alpha, app.beta, app.indus, app.others.claude]) upstream.reset()
  })
  const chat = (body: object = {}) => app.call('POST', '/v1/chat/completions', { model: 'test-model', messages, ...body })
  const served = async (body: object = {}) => outcome(await chat(body))
  const outcome = (reply: TestReply) => [reply.status, reply.json.error?.code ?? reply.headers.get('x-br-provider')]
  async function save(id: 'alpha' | 'beta'): Promise<void> {
    app[id].script({ body: { data: [{ id: 'mine' }] } })
    expect((await app.call('PUT', `/me/byok/${id}`, { key: savedKey, always_use: true }, { cookie })).status).toBe(200)
    app[id].reset()
  }
  /** Answers calls with own keys differently from calls with platform keys. */
  const byKey = (own: UpstreamScript, platform: UpstreamScript) => (request: { headers: { authorization?: string | undefined } }) =>
    request.headers.authorization?.includes('platform-secret') ? platform : own

  test("EDGE-05 an own key without credit is a 502 that has the provider's message, names the key and says where to change it", async () => {
    for (const refusal of empty) {
      app.beta.script(() => refusal)
      const sent = await chat({ provider: 'beta', upstream_key: 'sk-with-the-call-0001' })
      expect(outcome(sent)).toEqual([502, 'all_routes_failed'])
      expect(sent.json.error.message).toContain(refusal.body.error.message)
      expect(sent.json.error.message).toContain('"upstream_key"')
      expect(sent.json).toMatchObject({ own_key: 'upstream_key', own_key_provider: 'beta' })
      expect(sent.text).not.toContain('sk-with-the-call')
      app.beta.reset()
      await save('beta')
      app.beta.script(() => refusal)
      const saved = await chat({ model: 'beta/mine' })
      expect(outcome(saved)).toEqual([502, 'all_routes_failed'])
      expect(saved.json.error.message).toContain(refusal.body.error.message)
      expect(saved.json.error.message).toContain('PUT /me/byok/beta')
      expect(saved.json).toMatchObject({ own_key: 'saved', own_key_provider: 'beta' })
      app.beta.reset()
    }
  })

  test('EDGE-05 after an own key without credit, the other routes are tried, and if they fail the error names both causes', async () => {
    const [refusal] = empty
    await save('beta')
    app.beta.script(byKey(refusal, {}))
    expect(await served()).toEqual([200, 'alpha'])
    expect(app.beta.requests).toHaveLength(1)
    // The platform routes fail for another reason.
    const broken = { status: 500, body: { error: { message: 'crashed' } } }
    for (const upstream of [app.alpha, app.indus]) upstream.script(() => broken)
    app.beta.script(byKey(refusal, broken))
    const mixed = await chat()
    expect(outcome(mixed)).toEqual([502, 'all_routes_failed'])
    expect(mixed.json.error.message).toContain('crashed')
    expect(mixed.json.error.message).toContain(refusal.body.error.message)
    expect(mixed.json.error.message).toContain('PUT /me/byok/beta')
    // The platform accounts also have no credit. The caller can still fix the own key, so the error does not point to the operator.
    for (const upstream of [app.alpha, app.beta, app.indus]) upstream.script(() => refusal)
    expect(outcome(await chat())).toEqual([502, 'all_routes_failed'])
    // Without an own key, only the operator can fix it.
    await app.call('DELETE', '/me/byok/beta', undefined, { cookie })
    expect(outcome(await chat())).toEqual([503, 'provider_unavailable_billing'])
  })

  test('EDGE-05 a refusal of an own key names the key, and does not count against the route', async () => {
    for (const status of [401, 403]) {
      for (let count = 0; count < 4; count++) {
        app.beta.script({ status, body: { error: { message: 'no such key' } } })
        const reply = await chat({ provider: 'beta', upstream_key: 'sk-with-the-call-0001' })
        expect(outcome(reply)).toEqual([502, 'all_routes_failed'])
        expect(reply.json.error.message).toContain('no such key')
        expect(reply.json).toMatchObject({ own_key: 'upstream_key', own_key_provider: 'beta' })
      }
    }
    expect((await app.call('GET', '/v1/models/test-model')).json.routes).toContainEqual(expect.objectContaining({ provider: 'beta', available: true }))
  })

  test('EDGE-05 on the messages endpoint the refusal of an own credential is relayed byte for byte', async () => {
    const body = { type: 'error', error: { type: 'billing_error', message: 'Your credit balance is too low' } }
    app.others.claude.script({ status: 402, body })
    const reply = await app.call(
      'POST',
      '/v1/messages',
      { model: 'claude-test', max_tokens: 16, messages },
      { headers: { 'x-br-api-key': app.key, 'x-api-key': 'sk-ant-mine' }, token: null },
    )
    expect([reply.status, reply.json]).toEqual([402, body])
  })

  test('EDGE-06 a request that a provider does not accept goes to the next route, and is no failure of the first route if the request caused it', async () => {
    for (const status of [405, 406, 410, 411, 413, 414, 415, 418, 423, 431, 451]) {
      for (const stream of [false, true]) {
        app.alpha.script({ status, body: { error: { message: 'not here' } } })
        const reply = await chat({ stream })
        expect([status, reply.status, reply.headers.get('x-br-provider')]).toEqual([status, 200, 'beta'])
        expect([app.alpha.requests.length, app.beta.requests.length], String(status)).toEqual([1, 1])
        // A removed model (405, 410) is a failure of the route. A success resets the count.
        expect(await served()).toEqual([200, 'alpha'])
        app.alpha.reset()
        app.beta.reset()
      }
    }
    for (const status of [413, 451, 415])
      for (let count = 0; count < 4; count++) {
        app.alpha.script({ status, body: 'no' })
        expect(await served()).toEqual([200, 'beta'])
      }
    expect((await app.call('GET', '/v1/models/test-model')).json.routes).toContainEqual(expect.objectContaining({ provider: 'alpha', available: true }))
  })

  test('EDGE-06 when no route serves, the caller gets the last refusal with its status and text', async () => {
    const tooLarge = { status: 413, body: { error: { message: 'the prompt has 9 tokens too many', type: 'invalid_request_error', code: null } } }
    app.alpha.script({ status: 451, body: { error: { message: 'not in your region' } } })
    app.beta.script({ status: 500, body: 'oh' })
    app.indus.script(tooLarge)
    const last = await chat()
    expect([last.status, last.json.error.code, last.json.error.message]).toEqual([413, 'upstream_client_error', tooLarge.body.error.message])
    expect(last.headers.get('x-br-provider')).toBe('indus')
    expect((await usageRows(app))[0]).toMatchObject({ outcome: 'failed', valueUinr: 0n })
    // When another failure comes last, its message is used.
    app.alpha.script(tooLarge)
    app.beta.script({ status: 410, body: { error: { message: 'retired' } } })
    app.indus.script({ status: 503, body: { error: { message: 'busy today' } } })
    const other = await chat()
    expect(outcome(other)).toEqual([502, 'all_routes_failed'])
    expect(other.json.error.message).toContain('busy today')
    // The same for a model with only one route, in the other formats.
    app.alpha.script({ status: 413, body: { error: { message: 'too long here' } } })
    const single = await app.call('POST', '/v1/messages', { model: 'alpha-only', max_tokens: 16, messages })
    expect([single.status, single.json.type, single.json.error.message]).toEqual([413, 'error', 'too long here'])
  })

  test('EDGE-06 400, 404 and 422 still count as errors of the caller and end the chain', async () => {
    for (const status of [400, 404, 422]) {
      app.alpha.script({ status, body: { error: { message: 'bad schema' } } })
      expect((await chat()).status).toBe(status)
    }
    expect(app.beta.requests).toEqual([])
  })
})
