import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { adminHandler } from '../../../src/operations/admin/commands/admin-commands.ts'
import { startApp, type TestApp } from '../../harness/app.ts'
import { type MovableClock, movableClock } from '../../harness/clock.ts'

const hello = [{ role: 'user', content: 'Hello' }]

describe('maintenance', () => {
  let app: TestApp
  let clock: MovableClock
  beforeEach(async () => {
    clock = movableClock()
    app = await startApp({ clock, env: { CIRCUIT_FAILURES: '2', CIRCUIT_OPEN_MS: '1000' } })
  })
  afterEach(() => app.stop())

  const ask = (more: object = {}, model = 'test-model') => app.call('POST', '/v1/chat/completions', { model, messages: hello, ...more })
  const admin = (args: object) => adminHandler(app.gateway.app)({ name: 'maintenance', args: { ...args } })
  const heal = () => app.gateway.app.jobs.runOnce('routing.heal')
  const flags = async (provider: string, model = 'test-model') => {
    const { routes } = (await app.call('GET', `/v1/models/${model}`)).json
    const { available, maintenance, byok_only } = routes.find((route: { provider: string }) => route.provider === provider)
    return { available, maintenance, byok_only }
  }

  test('CAT-18 CAT-05 a route that the operator quarantines is shown as maintenance and not dialed, and returns by itself', async () => {
    expect(await admin({ route: 'alpha/test-model', for: '10m' })).toMatchObject({ route: 'alpha/test-model', maintenance: true, set_by: 'operator' })
    expect(await flags('alpha')).toEqual({ available: true, maintenance: true, byok_only: false })
    expect(await flags('beta')).toEqual({ available: true, maintenance: false, byok_only: false })
    expect((await ask()).headers.get('x-br-provider')).toBe('beta')
    expect((await ask({}, 'auto:cheapest')).status).toBe(200)
    clock.advance(10 * 60_000 - 5000)
    expect((await flags('alpha')).maintenance).toBe(true)
    clock.advance(6000)
    expect((await flags('alpha')).maintenance).toBe(false)
    expect((await ask()).headers.get('x-br-provider')).toBe('alpha')
  })

  test('the operator can end a quarantine early and list quarantines, and errors say what is wrong', async () => {
    await admin({ route: 'alpha/test-model', for: '2h' })
    expect(await admin({})).toMatchObject({ withheld: [{ route: 'alpha/test-model', set_by: 'operator', reason: 'set by the operator' }] })
    expect(await admin({ route: 'alpha/test-model', clear: true })).toEqual({ route: 'alpha/test-model', maintenance: false })
    expect((await ask()).headers.get('x-br-provider')).toBe('alpha')
    expect(await admin({})).toEqual({ withheld: [] })
    await expect(admin({ route: 'alpha/test-model', clear: true })).rejects.toThrow('is not withheld')
    await expect(admin({ route: 'alpha/nothing', for: '1m' })).rejects.toThrow('There is no route')
    await expect(admin({ route: 'alpha/test-model' })).rejects.toThrow('--for')
    await expect(admin({ route: 'alpha/test-model', for: 'soon' })).rejects.toThrow('90s, 10m, 2h or 1d')
    await expect(admin({ route: 'alpha/test-model', for: '31d' })).rejects.toThrow('30 days')
    const { entries } = (await adminHandler(app.gateway.app)({ name: 'audit', args: {} })) as { entries: { act: string; target: string; outcome: string }[] }
    expect(entries.map(({ act, target, outcome }) => `${act} ${target} ${outcome}`)).toEqual(
      expect.arrayContaining(['setMaintenance alpha/test-model ok', 'clearMaintenance alpha/test-model ok']),
    )
  })

  test('ROUTE-57 ROUTE-58 a quarantined route is skipped. If it was the last route, the call gets 400 no_route, but a saved key still uses it', async () => {
    await admin({ route: 'alpha/alpha-only', for: '10m' })
    const none = await ask({}, 'alpha-only')
    expect([none.status, none.json.error.code]).toEqual([400, 'no_route'])
    expect(none.json.error.message).toContain('withheld')
    expect(app.alpha.requests).toEqual([])
    const cookie = await app.signIn()
    expect((await app.call('PUT', '/me/byok/alpha', { key: 'sk-saved-alpha-key-01' }, { cookie })).status).toBe(200)
    const own = await ask({}, 'alpha-only')
    expect([own.status, own.headers.get('x-br-provider')]).toEqual([200, 'alpha'])
    expect(app.alpha.requests.at(-1)?.headers['authorization']).toBe('Bearer sk-saved-alpha-key-01')
  })

  test('the gateway quarantines a route whose circuit keeps opening, each time for longer, and does not dial it meanwhile', async () => {
    const keepOpening = async () => {
      app.alpha.script(() => ({ status: 500 }))
      for (let round = 0; round < 3; round++) {
        for (let count = 0; count < 2; count++) await ask({ provider: 'alpha' })
        clock.advance(1100)
      }
    }
    await keepOpening()
    expect((await flags('alpha')).maintenance).toBe(false)
    await heal()
    expect((await flags('alpha')).maintenance).toBe(true)
    expect(await admin({})).toMatchObject({ withheld: [{ route: 'alpha/test-model', set_by: 'gateway', reason: 'its circuit keeps opening' }] })
    const before = app.alpha.requests.length
    for (let count = 0; count < 3; count++) expect((await ask()).status).toBe(200)
    await heal()
    expect(app.alpha.requests).toHaveLength(before)
    clock.advance(2 * 60_000 + 1000)
    expect((await flags('alpha')).maintenance).toBe(false)
    await keepOpening()
    await heal()
    clock.advance(3 * 60_000)
    expect((await flags('alpha')).maintenance).toBe(true)
    clock.advance(61_000)
    app.alpha.reset()
    expect((await flags('alpha')).maintenance).toBe(false)
    expect((await ask()).headers.get('x-br-provider')).toBe('alpha')
  })

  test("a route is quarantined when its provider refuses the platform's key, and a refusal of a caller's key has no effect", async () => {
    app.alpha.script(() => ({ status: 401, body: { error: { message: 'no' } } }))
    for (let count = 0; count < 4; count++) expect((await ask({ upstream_key: 'sk-of-the-caller', provider: 'alpha' })).status).toBe(502)
    await heal()
    expect((await flags('alpha')).maintenance).toBe(false)
    app.alpha.script(() => ({ status: 402, body: { error: { message: 'pay' } } }))
    for (let count = 0; count < 3; count++) expect((await ask()).headers.get('x-br-provider')).toBe('beta')
    await heal()
    expect((await flags('alpha')).maintenance).toBe(true)
  })

  test("the gateway does not quarantine the last route of a model, and the operator's decision takes precedence", async () => {
    app.alpha.script(() => ({ status: 402, body: { error: { message: 'pay' } } }))
    for (let count = 0; count < 3; count++) expect((await ask({}, 'alpha-only')).json.error.code).toBe('provider_unavailable_billing')
    await heal()
    expect((await flags('alpha', 'alpha-only')).maintenance).toBe(false)
    for (let count = 0; count < 3; count++) await ask()
    await admin({ route: 'alpha/test-model', for: '1h' })
    await heal()
    expect(await admin({})).toMatchObject({ withheld: [{ route: 'alpha/test-model', set_by: 'operator' }] })
  })

  test('the gateway does not quarantine the last route in India either, because callers with india_only need it', async () => {
    const refuse = () => ({ status: 402, body: { error: { message: 'pay' } } })
    app.indus.script(refuse)
    for (let count = 0; count < 4; count++) expect((await ask({ data_policy: 'india_only' })).json.error.code).toBe('provider_unavailable_billing')
    await heal()
    expect((await flags('indus')).maintenance).toBe(false)
    app.indus.reset()
    expect((await ask({ data_policy: 'india_only' })).headers.get('x-br-provider')).toBe('indus')
  })
})
