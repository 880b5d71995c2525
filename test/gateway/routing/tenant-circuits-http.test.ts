/** The requests of one organisation must not make a route unavailable for others. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../harness/app.ts'
import { movableClock } from '../../harness/clock.ts'
import { until } from '../../harness/until.ts'
import type { UpstreamScript } from '../../harness/upstream-server.ts'

/**
 * The clock runs during a test, so a circuit stays open for longer than a slow machine needs. Four openings fit into the quarantine's window of 10
 * min.
 */
const openMs = 120_000
const bad = 'make it fail'

describe('circuits by organisation', () => {
  const clock = movableClock(Date.UTC(2026, 10, 2, 6))
  let app: TestApp
  let tokens: readonly [string, string, string]
  beforeAll(async () => {
    app = await startApp({ clock, env: { CIRCUIT_FAILURES: '3', CIRCUIT_OPEN_MS: String(openMs) } })
    tokens = [app.key, (await app.otherOrg('Second')).key, (await app.otherOrg('Third')).key]
  })
  afterAll(() => app.stop())
  beforeEach(async () => {
    for (const upstream of [app.alpha, app.beta, app.indus]) upstream.reset()
    clock.advance(20 * 60_000)
    for (const token of tokens) await ask(token, { provider: 'alpha' })
    app.alpha.reset()
  })
  const ask = (token: string, body: object = {}, content = 'hello') =>
    app.call('POST', '/v1/chat/completions', { model: 'test-model', messages: [{ role: 'user', content }], ...body }, { token })
  const servedBy = async (token: string, content?: string) => (await ask(token, {}, content)).headers.get('x-br-provider')
  const alpha = async () => (await app.call('GET', '/v1/models/test-model')).json.routes.find((route: { provider: string }) => route.provider === 'alpha')
  const heal = () => app.gateway.app.jobs.runOnce('routing.heal')
  /** The provider fails in this way for requests that ask for it, and serves all other requests. */
  const failsFor = (script: UpstreamScript) => app.alpha.script(request => (request.raw.includes(bad) ? script : {}))

  const failures: readonly (readonly [string, UpstreamScript])[] = [
    ['5xx', { status: 500, body: 'oh' }],
    ['a refusal of the key', { status: 403, body: { error: { message: 'no access' } } }],
    ['nothing', { reset: true }],
    ['an answer without choices', { body: { request_id: 'deferred-1' } }],
    ['too many', { status: 429, body: 'slow down' }],
  ]
  test.each(failures)('HARD-08 %s that one organisation causes makes the route unavailable only for itself', async (_what, script) => {
    const [guilty, second, third] = tokens
    failsFor(script)
    for (let count = 0; count < 12; count++) expect(await servedBy(guilty, bad)).toBe('beta')
    // Its own circuit is open, so the route is not dialed any more.
    const dialed = app.alpha.requests.length
    expect(dialed).toBeLessThan(12)
    expect(await servedBy(guilty)).toBe('beta')
    expect(app.alpha.requests).toHaveLength(dialed)
    for (const token of [second, third]) expect(await servedBy(token)).toBe('alpha')
    await heal()
    expect(await alpha()).toMatchObject({ available: true, maintenance: false })
    for (const token of [second, third]) expect(await servedBy(token)).toBe('alpha')
  })

  test('HARD-08 the openings of one organisation cannot quarantine a route, however long it continues', async () => {
    failsFor({ status: 500, body: 'oh' })
    for (let round = 0; round < 4; round++) {
      for (let count = 0; count < 4; count++) await ask(tokens[0], { provider: 'alpha' }, bad)
      clock.advance(openMs + 100)
    }
    await heal()
    expect(await alpha()).toMatchObject({ available: true, maintenance: false })
    expect(await servedBy(tokens[1])).toBe('alpha')
  })

  test('HARD-08 failures of two organisations open the circuit for all, even for a third one, and a success closes it', async () => {
    app.alpha.script(() => ({ status: 500, body: 'oh' }))
    for (let count = 0; count < 3; count++) expect(await servedBy(tokens[0])).toBe('beta')
    expect((await alpha()).available).toBe(true)
    for (let count = 0; count < 2; count++) expect(await servedBy(tokens[1])).toBe('beta')
    await until(async () => !(await alpha()).available, 'the founders are looked up, and the circuit opens')
    const dialed = app.alpha.requests.length
    expect(await servedBy(tokens[2])).toBe('beta')
    expect(app.alpha.requests).toHaveLength(dialed)
    // In the half-open state, the first organisation that fails does not keep the circuit open for the next one.
    clock.advance(openMs + 100)
    failsFor({ status: 500, body: 'oh' })
    app.alpha.script(() => ({}))
    app.alpha.reset()
    failsFor({ status: 500, body: 'oh' })
    expect(await servedBy(tokens[0], bad)).toBe('beta')
    expect(await servedBy(tokens[2])).toBe('alpha')
    expect((await alpha()).available).toBe(true)
  })

  test('HARD-08 several organisations of one person are one witness. They open no circuit for others and quarantine no route', async () => {
    const cookie = await app.signIn()
    const keys: string[] = []
    for (const name of ['One more', 'And another']) {
      const made = await app.call('POST', '/me/orgs', { name }, { cookie })
      expect((await app.call('POST', '/me/orgs/switch', { org_id: made.json.id }, { cookie })).status).toBe(200)
      keys.push((await app.call('POST', '/me/keys', { name }, { cookie })).json.key)
    }
    app.alpha.script(() => ({ status: 500, body: 'oh' }))
    for (let round = 0; round < 4; round++) {
      for (const token of [tokens[0], ...keys]) for (let count = 0; count < 4; count++) expect(await servedBy(token)).toBe('beta')
      clock.advance(openMs + 100)
    }
    await heal()
    expect(await alpha()).toMatchObject({ available: true, maintenance: false })
    app.alpha.reset()
    expect(await servedBy(tokens[1])).toBe('alpha')
  })

  test('HARD-08 calls on own keys neither open nor close the circuit of a route, and do not quarantine it', async () => {
    const own = { provider: 'alpha', upstream_key: 'sk-own-credential-1' }
    app.alpha.script(() => ({ status: 500, body: 'oh' }))
    for (let round = 0; round < 4; round++) {
      for (const token of tokens) for (let count = 0; count < 4; count++) await ask(token, own)
      clock.advance(openMs + 100)
    }
    await heal()
    expect(await alpha()).toMatchObject({ available: true, maintenance: false })
    for (const token of tokens.slice(0, 2)) for (let count = 0; count < 3; count++) await ask(token, { provider: 'alpha' })
    await until(async () => !(await alpha()).available, 'the circuit opens')
    app.alpha.reset()
    expect((await ask(tokens[2], own)).status).toBe(200)
    expect((await alpha()).available, 'still open: the key of one organisation is no word on that of the platform').toBe(false)
  })

  test("HARD-08 a route is quarantined when two organisations see its provider refuse the platform's key", async () => {
    app.alpha.script(() => ({ status: 401, body: { error: { message: 'revoked' } } }))
    for (let count = 0; count < 3; count++) await ask(tokens[0])
    await heal()
    expect((await alpha()).maintenance).toBe(false)
    await ask(tokens[1])
    await heal()
    expect((await alpha()).maintenance).toBe(true)
  })

  test("HARD-08 a refusal because of the content, in the words of OpenRouter and xAI, is the caller's fault and does not count against the route", async () => {
    for (const message of [
      'Your input was flagged for "violence". No credits were charged.',
      'openai/x requires moderation on OpenInference. Your input was flagged.',
      'Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_BIO',
    ]) {
      failsFor({ status: 403, body: { error: { message, code: 403 } } })
      for (let count = 0; count < 4; count++) {
        const reply = await ask(tokens[0], {}, bad)
        expect([reply.status, reply.json.error.message]).toEqual([403, message])
      }
      expect(await servedBy(tokens[0])).toBe('alpha')
      app.alpha.reset()
    }
    expect(app.beta.requests).toEqual([])
    await heal()
    expect(await alpha()).toMatchObject({ available: true, maintenance: false })
  })
})

describe('a gateway of one organisation', () => {
  test("HARD-08 without other organisations, an organisation's own failures open the circuit, are shown, and quarantine the route", async () => {
    const clock = movableClock(Date.UTC(2026, 10, 2, 6))
    const app = await startApp({ clock, env: { CIRCUIT_FAILURES: '2', CIRCUIT_OPEN_MS: String(openMs) } })
    try {
      app.alpha.script(() => ({ status: 500, body: 'oh' }))
      const ask = () => app.call('POST', '/v1/chat/completions', { model: 'test-model', provider: 'alpha', messages: [{ role: 'user', content: 'hi' }] })
      const alpha = async () => (await app.call('GET', '/v1/models/test-model')).json.routes[0]
      for (let count = 0; count < 2; count++) await ask()
      expect(await alpha()).toMatchObject({ provider: 'alpha', available: false })
      for (let round = 0; round < 3; round++) {
        clock.advance(openMs + 100)
        await ask()
      }
      await app.gateway.app.jobs.runOnce('routing.heal')
      expect((await alpha()).maintenance).toBe(true)
    } finally {
      await app.stop()
    }
  })
})
