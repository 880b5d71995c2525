/** The panel on the platform key: each picture and the judge's call are held, counted and limited as separate calls. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { checkInvariants } from '../../../../src/gateway/limits/invariants.ts'
import { defaultOperatorFile, startApp, type TestApp } from '../../../harness/app.ts'
import { type ImageProviders, keys, startImageProviders } from './image-providers.ts'

const members = ['flux-1-schnell', 'flux-1-dev', 'sdxl']

describe('limits of the image panel', () => {
  let app: TestApp
  let providers: ImageProviders
  beforeAll(async () => {
    providers = await startImageProviders()
    app = await startApp({
      env: { ...providers.env, TEST_GANGA_KEY: keys.ganga, CIRCUIT_FAILURES: '1000' },
      operatorFile: urls => {
        const file = defaultOperatorFile(urls)
        const route = { provider: 'alpha', input_inr_per_mtok: 10, output_inr_per_mtok: 40, source: 'test', as_of: '2026-01-01' }
        return {
          providers: [...file.providers, { id: 'ganga', base_url: `${providers.origin}/ganga/v1`, residency: 'india', api_key_env: 'TEST_GANGA_KEY' }],
          models: [
            ...file.models,
            { id: 'eye', kind: 'chat', context_length: 100_000, modalities: ['text', 'image'], routes: [route] },
            ...members.map(id => ({ id, inr_per_image: 3, routes: [{ provider: 'ganga' }] })),
          ],
        }
      },
    })
  })
  afterAll(async () => {
    await app.stop()
    await providers.close()
  })
  beforeEach(() => {
    providers.reset()
    app.alpha.reset()
    app.alpha.script(() => ({ chunks: ['{"best": 2}'] }))
  })
  const ask = (token: string, headers: Record<string, string> = {}) =>
    app.call('POST', '/v1/images/generations', { model: 'image-sangam', prompt: 'a boat' }, { token, headers })
  const drew = (json: { br_sangam: { panel: { ok: boolean }[] } }) => json.br_sangam.panel.filter(({ ok }) => ok).length

  test('a budget that is too small for the whole panel pays for the pictures that it covers, and is not exceeded', async () => {
    // A picture costs ₹3 and the judge costs ₹0.00032, but the hold for the judge is larger.
    for (const [budgetUinr, pictures, isJudged, cost] of [
      [4_000_000n, 1, false, '3'],
      [7_000_000n, 2, true, '6.00032'],
      [9_000_100n, 3, false, '9'],
      [10_000_000n, 3, true, '9.00032'],
    ] as const) {
      const { key, keyId } = await app.newKey()
      await app.gateway.app.limits.budgets.set(app.orgId, 'key', String(keyId), budgetUinr, { strict: true })
      const reply = await ask(key)
      expect([reply.status, drew(reply.json), reply.json.br_sangam.judged, reply.headers.get('x-br-cost-inr')], String(budgetUinr)).toEqual([
        200,
        pictures,
        isJudged,
        cost,
      ])
      await app.gateway.app.limits.flushNow()
      const spent = await ask(key)
      expect([spent.status, spent.json.error.code, spent.json.spent_inr]).toEqual([429, 'budget_exceeded', Number(cost)])
    }
    const { key, keyId } = await app.newKey()
    await app.gateway.app.limits.budgets.set(app.orgId, 'key', String(keyId), 2_000_000n, { strict: true })
    providers.reset()
    expect((await ask(key)).json.error.code).toBe('budget_exceeded')
    expect(providers.seen).toEqual([])
  })

  test('a panel with its judge is one call of its run, at its whole cost, also when a member fails, and a held run makes no picture', async () => {
    const made = (await app.call('POST', '/v1/me/agents', { name: 'draws in runs', run: { max_calls: 2 } })).json
    const token = (await app.call('POST', `/v1/me/agents/${made.id}/token`, {})).json.access_token
    const run = { 'x-br-run-id': 'pictures' }
    const first = await ask(token, run)
    expect([first.status, drew(first.json), first.json.br_sangam.judged], first.text).toEqual([200, 3, true])
    expect([first.headers.get('x-br-run-id'), first.headers.get('x-br-run-calls-remaining')]).toEqual(['pictures', '1'])
    const show = async () => (await app.call('GET', `/v1/me/runs/pictures?agent_id=${made.id}`)).json
    expect(await show()).toMatchObject({ calls: 1, value_inr: 9.00032, state: 'active' })
    providers.answer(one => (one.json['model'] === members[0] ? { status: 500, body: {} } : undefined))
    expect((await ask(token, run)).status).toBe(200)
    const held = await show()
    expect([held.calls, held.state, held.value_inr]).toEqual([2, 'held', 15.00064])
    expect(held.by_model.reduce((sum: number, { calls }: { calls: number }) => sum + calls, 0)).toBe(2)
    const dials = providers.seen.length
    const refused = await ask(token, run)
    expect([refused.status, refused.json.error.code]).toEqual([429, 'run_calls_exceeded'])
    expect(providers.seen).toHaveLength(dials)
    // Two panels concurrently have room for one.
    const both = { 'x-br-run-id': 'both', 'x-br-run-max-calls': '1' }
    expect((await Promise.all([ask(token, both), ask(token, both)])).map(({ status }) => status).sort()).toEqual([200, 429])
    await app.gateway.app.limits.flushNow()
    expect(await checkInvariants(app.db)).toEqual([])
  })

  test('the reported remaining budget of an agent includes all parts of the panel', async () => {
    const agent = await app.newAgent('panel painter')
    await app.setBudget('agent', agent.id, 50)
    const reply = await ask(agent.token)
    expect([reply.status, reply.headers.get('x-br-cost-inr'), reply.headers.get('x-br-budget-remaining-inr')]).toEqual([200, '9.00032', '40.99968'])
  })

  test('with one call left in the daily limit, the panel makes one picture without a judge, and the rate limit counts the request once', async () => {
    const { key: daily } = await app.newKey({ daily: 1 })
    const reply = await ask(daily)
    expect([reply.status, drew(reply.json), reply.json.br_sangam.reason]).toEqual([200, 1, 'only one image was made'])
    expect(app.alpha.requests).toEqual([])
    const { key: rated } = await app.newKey({ rpm: 1 })
    expect(drew((await ask(rated)).json)).toBe(3)
    expect((await ask(rated)).json.error.code).toBe('rate_limit_exceeded')
  })

  test('for a key with one concurrent call, the members make their pictures one after the other', async () => {
    const { key, keyId } = await app.newKey()
    expect((await app.call('PATCH', `/me/keys/${keyId}`, { max_concurrency: 1 }, { cookie: await app.signIn() })).status).toBe(200)
    let drawing = 0
    let most = 0
    providers.answer(async () => {
      most = Math.max(most, ++drawing)
      for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate)
      drawing--
      return undefined
    })
    const reply = await ask(key)
    expect([reply.status, drew(reply.json) >= 1, most]).toEqual([200, true, 1])
  })

  test('a panel with an idempotency key is made once, even for two concurrent requests, and after a failure it can be sent again', async () => {
    const twice = await Promise.all([ask(app.key, { 'idempotency-key': 'boat-1' }), ask(app.key, { 'idempotency-key': 'boat-1' })])
    expect(twice.map(({ status }) => status).sort()).toEqual([200, 409])
    const replayed = twice.find(({ status }) => status === 409)
    expect([replayed?.json.error.code, replayed?.json.usage.cost_inr]).toEqual(['idempotency_replayed', 9.00032])
    expect(providers.seen).toHaveLength(3)
    providers.answer(() => ({ status: 500, body: {} }))
    expect((await ask(app.key, { 'idempotency-key': 'boat-2' })).status).toBe(502)
    providers.answer(null)
    expect((await ask(app.key, { 'idempotency-key': 'boat-2' })).status).toBe(200)
  })
})
