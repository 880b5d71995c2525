import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp, until } from '../../harness/app.ts'
import { movableClock } from '../../harness/clock.ts'

const dayMs = 24 * 3600_000
const clock = movableClock(Date.UTC(2026, 9, 31, 18, 45))
let app: TestApp
const read = (path: string) => app.call('GET', path, undefined, { token: null })

beforeAll(async () => {
  app = await startApp({
    clock,
    env: { ANON_RPM: '100000' },
    operatorFile({ alpha }) {
      const route = (provider: string, more: object = {}) => ({ provider, input_inr_per_mtok: 10, output_inr_per_mtok: 40, ...more })
      const chat = (id: string, routes: object[]) => ({ id, kind: 'chat', context_length: 10_000, routes })
      return {
        providers: [
          { id: 'alpha', base_url: alpha, auth: 'bearer' },
          { id: 'unset', base_url: alpha, auth: 'bearer' },
        ],
        models: [chat('marker', [route('alpha')]), chat('own-key-only', [route('alpha', { byok_only: true })]), chat('no-platform-key', [route('unset')])],
      }
    },
  })
})
afterAll(() => app.stop())

/** Waits for a ranking that includes the latest call of a model that everybody sees. */
async function afresh(): Promise<void> {
  const requests = async () => (await read('/v1/rankings')).json.windows['30d'].find(({ model }: { model: string }) => model === 'marker')?.requests ?? 0
  const before = await requests()
  expect((await app.call('POST', '/v1/chat/completions', { model: 'marker', messages: [{ role: 'user', content: 'hi' }] })).status).toBe(200)
  await app.gateway.app.limits.flushNow()
  clock.advance(3 * 60_000)
  await until(async () => (await requests()) > before, 20_000)
}

describe('rankings of a gateway on which models run on own keys only', () => {
  test('EDGE-16 a model is ranked in the windows in which two organisations used it, and a model of only one organisation is not listed', async () => {
    const upstream = app.alpha
    const other = await app.otherOrg('Rankings Neighbours')
    const ask = (model: string, token: string, body: object = {}) =>
      app.call('POST', '/v1/chat/completions', { model, messages: [{ role: 'user', content: 'hi' }], upstream_key: 'sk-own-0001', ...body }, { token })
    const ranked = async (window: '7d' | '30d') => {
      await afresh()
      return (await read('/v1/rankings')).json.windows[window].map(({ model }: { model: string }) => model)
    }
    // Only one organisation uses the model, with several calls and keys.
    const second = await app.newKey()
    for (const token of [app.key, app.key, second.key]) expect((await ask('no-platform-key', token)).status).toBe(200)
    expect((await ask('own-key-only', app.key)).status).toBe(200)
    expect(await ranked('7d')).not.toContain('no-platform-key')
    expect(await ranked('30d')).not.toContain('own-key-only')
    // A failed call of another organisation does not count as use.
    upstream.script({ status: 500 })
    expect((await ask('no-platform-key', other.key)).status).toBe(502)
    expect(await ranked('7d')).not.toContain('no-platform-key')
    expect((await ask('no-platform-key', other.key)).status).toBe(200)
    const after = await ranked('7d')
    expect(after).toContain('no-platform-key')
    expect(after).not.toContain('own-key-only')
    const { json } = await read('/v1/rankings')
    const tokens = json.windows['7d'].map((row: { tokens: number }) => row.tokens)
    expect(tokens).toEqual(tokens.toSorted((a: number, b: number) => b - a))
    expect(json.windows['7d'].map((row: { rank: number }) => row.rank)).toEqual(tokens.map((_: number, index: number) => index + 1))
    // Ids that only a saved key knows are not ranked, whoever uses them.
    for (const token of [app.key, other.key]) expect((await ask('alpha/found-on-a-key', token)).status).toBe(200)
    expect(await ranked('7d')).not.toContain('alpha/found-on-a-key')
    // In the short window, only one organisation has used the model.
    clock.advance(8 * dayMs)
    expect((await ask('no-platform-key', app.key)).status).toBe(200)
    expect(await ranked('7d')).not.toContain('no-platform-key')
    expect(await ranked('30d')).toContain('no-platform-key')
  })

  test('calls with an own key that the provider refuses do not lower the public success rate of a model', async () => {
    await afresh()
    app.alpha.script(() => ({ status: 401, body: { error: { message: 'bad key' } } }))
    const body = { model: 'marker', messages: [{ role: 'user', content: 'hi' }], upstream_key: 'sk-wrong-0001' }
    for (let i = 0; i < 5; i++) expect((await app.call('POST', '/v1/chat/completions', body)).status).toBe(502)
    app.alpha.script(() => ({}))
    await afresh()
    const { requests, success_rate } = (await read('/v1/models/marker/stats')).json
    expect(requests).toBeGreaterThanOrEqual(7)
    expect(success_rate).toBe(1)
  })
})
