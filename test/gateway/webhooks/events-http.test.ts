import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { endOfIstMonthMs } from '../../../src/platform/values/ist-time.ts'
import { startApp, type TestApp } from '../../harness/app.ts'
import { movableClock } from '../../harness/clock.ts'
import { longThinkers, thoughtTokensPerInr, usageWorth } from '../../harness/long-thinkers.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../../harness/webhook-receiver.ts'
import { type OwnServer, startOwnServer } from '../byok/own-server.ts'
import { type Envelope, heard, listen, settled } from './heard.ts'

/** 09:15 on 21 November 2026 in India. */
const morning = Date.UTC(2026, 10, 21, 3, 45, 1)
const hourMs = 3600_000
const clock = movableClock(morning)
const thisMonth = () => ({ period: 'month', resets_at: new Date(endOfIstMonthMs(clock.nowMs())).toISOString() })
/** The usage that a provider reports so that a call of `alpha-only` costs this amount. */
const spending = (inr: number) => ({ usage: usageWorth(inr) })

let receiver: WebhookReceiver
let server: OwnServer
let app: TestApp

beforeAll(async () => {
  receiver = await startWebhookReceiver()
  server = await startOwnServer()
  app = await startApp({
    clock,
    operatorFile: urls => longThinkers(urls),
    env: { OUTBOUND_ALLOW: `${receiver.hostPort},${server.hostPort}`, CIRCUIT_OPEN_MS: '30000', WEBHOOK_POLL_MS: '20' },
  })
})
afterAll(async () => {
  await app.stop()
  await server.close()
  await receiver.close()
})
beforeEach(() => {
  for (const upstream of [app.alpha, app.beta, app.indus]) upstream.reset()
})

const chat = (token: string, model = 'alpha-only', more: object = {}, headers: Record<string, string> = {}) =>
  app.call('POST', '/v1/chat/completions', { model, messages: [{ role: 'user', content: 'Hello' }], ...more }, { token, headers })
const at = (path: string, type?: Envelope['type']) => heard(receiver, path, type)

/** Makes an organisation with a cookie of its owner and an endpoint at its own path. */
async function listeningOrg(name: string, params: object = {}) {
  const org = await app.otherOrg(name)
  const cookie = await app.signIn(org.userId, org.orgId)
  const path = `/${name.toLowerCase().replaceAll(' ', '-')}`
  await listen(app, receiver, path, params, cookie)
  return { ...org, cookie, path }
}

describe('keys', () => {
  test("KEY-07 making a key sends key.created once, only to the key's organisation", async () => {
    const org = await listeningOrg('Key Makers')
    const other = await listeningOrg('Key Bystanders')
    const made = await app.call('POST', '/me/keys', { name: 'made of words', scope: 'inference' }, { cookie: org.cookie })
    await settled(app)
    expect(at(org.path)).toEqual([
      {
        id: expect.any(String),
        type: 'key.created',
        created: Math.floor(Date.parse(made.json.created_at) / 1000),
        org_id: org.orgId,
        data: { key_id: made.json.id, prefix: made.json.prefix, tier: 'standard', scope: 'inference' },
      },
    ])
    expect(at(other.path)).toEqual([])
    // The refused request made no key.
    expect((await app.call('POST', '/me/keys', { name: 'made of words' }, { cookie: org.cookie })).json.error.code).toBe('duplicate_key_name')
    await settled(app)
    expect(at(org.path)).toHaveLength(1)
  })

  test('KEY-15 a deleted key is refused immediately, and key.revoked is sent once, however often the key is deleted', async () => {
    const org = await listeningOrg('Key Enders', { event_types: ['key.revoked'] })
    const made = await app.call('POST', '/me/keys', {}, { cookie: org.cookie })
    expect((await chat(made.json.key)).status).toBe(200)
    const end = () => app.call('DELETE', `/me/keys/${made.json.id}`, undefined, { cookie: org.cookie })
    expect((await end()).status).toBe(200)
    expect((await chat(made.json.key)).status).toBe(401)
    await end()
    await settled(app)
    expect(at(org.path).map(({ type, org_id, data }) => ({ type, org_id, data }))).toEqual([
      { type: 'key.revoked', org_id: org.orgId, data: { key_id: made.json.id, prefix: made.json.prefix, tier: 'standard', scope: 'full' } },
    ])
  })

  test('when a membership ends or the operator revokes a key, one key.revoked is sent for each key; rotation, disabling and expiry send none', async () => {
    const org = await listeningOrg('Key Leavers', { event_types: ['key.created', 'key.revoked'] })
    const make = async (cookie: string, more: object = {}): Promise<number> => (await app.call('POST', '/me/keys', more, { cookie })).json.id
    const removed = await app.newMember('member', { orgId: org.orgId })
    const leaving = await app.newMember('member', { orgId: org.orgId })
    const ended = [await make(removed.cookie), await make(removed.cookie), await make(leaving.cookie), await make(org.cookie)]
    const kept = [await make(org.cookie), await make(org.cookie, { name: 'short', expires_days: 1 })]
    expect((await app.call('DELETE', `/me/members/${removed.userId}`, undefined, { cookie: org.cookie })).status).toBe(200)
    expect((await app.call('DELETE', `/me/members/${leaving.userId}`, undefined, { cookie: leaving.cookie })).status).toBe(200)
    await app.gateway.app.keys.revoke(org.orgId, ended[3] ?? 0)
    for (const id of kept) expect((await app.call('POST', `/me/keys/${id}/rotate`, { overlap_days: 0 }, { cookie: org.cookie })).status).toBe(200)
    for (const enabled of [false, true]) await app.call('PATCH', `/me/keys/${kept[0]}`, { enabled }, { cookie: org.cookie })
    clock.advance(25 * hourMs)
    // The name of an expired key can be used again.
    const successor = await make(org.cookie, { name: 'short' })
    await settled(app)
    const told = (type: Envelope['type']) => at(org.path, type).map(({ data }) => data.key_id)
    expect(told('key.revoked').sort()).toEqual([...ended].sort())
    expect(told('key.created').sort()).toEqual([...ended, ...kept, successor].sort())
  })
})

describe('budgets', () => {
  const inOrder = (a: Envelope, b: Envelope): number => a.data.scope.localeCompare(b.data.scope) || a.type.localeCompare(b.type)
  const crossings = (path: string) =>
    at(path)
      .filter(({ type }) => type !== 'key.created')
      .sort(inOrder)
      .map(({ type, data }) => [type, data])

  test('BUDG-04 BUDG-05 a crossed budget is reported once per scope with scope, threshold, spent_inr and cap_inr, and again as usage.threshold', async () => {
    const org = await listeningOrg('Big Spenders', { event_types: ['budget.warn', 'budget.block', 'usage.threshold'] })
    const workspace = await app.call('POST', '/me/workspaces', { name: 'Team', member_uids: [org.userId] }, { cookie: org.cookie })
    const key = await app.call('POST', '/me/keys', { workspace_id: workspace.json.id }, { cookie: org.cookie })
    expect(key.status, key.text).toBe(201)
    const agent = await app.call('POST', '/v1/me/agents', { name: 'crosser' }, { token: org.key })
    const scopes = [
      ['agent', agent.json.id],
      ['key', key.json.id],
      ['member', org.userId],
      ['org', org.orgId],
      ['workspace', workspace.json.id],
    ] as const
    for (const [scope, id] of scopes) {
      const set = await app.call(
        'POST',
        '/me/budgets',
        { scope, ...(scope === 'org' ? {} : { target_id: id }), monthly_budget_inr: 10 },
        { cookie: org.cookie },
      )
      expect(set.status, set.text).toBe(200)
    }
    const spend = async (inr: number) => {
      app.alpha.script(spending(inr))
      const reply = await chat(key.json.key, 'alpha-only', {}, { 'x-br-agent-id': 'crosser' })
      expect(reply.status, reply.text).toBe(200)
      await settled(app)
    }
    const figures = (threshold: 80 | 100, spent_inr: number) =>
      scopes.flatMap(([scope, id]) => {
        const data = { scope, scope_id: String(id), threshold, spent_inr, cap_inr: 10, ...thisMonth() }
        return [
          [threshold === 80 ? 'budget.warn' : 'budget.block', data],
          ['usage.threshold', data],
        ]
      })
    await spend(7.9)
    expect(crossings(org.path)).toEqual([])
    await spend(0.6)
    expect(crossings(org.path)).toEqual(figures(80, 8.5))
    receiver.forget()
    await spend(0.5)
    expect(crossings(org.path)).toEqual([])
    await spend(1.5)
    expect(crossings(org.path)).toEqual(figures(100, 10.5))
    receiver.forget()
    expect((await chat(key.json.key)).json.error.code).toBe('budget_exceeded')
    await settled(app)
    expect(crossings(org.path)).toEqual([])
  })

  test('a charge that crosses both thresholds, a cap below the present spend, and usage on an own provider key also send events', async () => {
    const org = await listeningOrg('Jumpers', { event_types: ['budget.warn', 'budget.block', 'usage.threshold'] })
    const key = await app.call('POST', '/me/keys', { budget_inr: 1 }, { cookie: org.cookie })
    const told = (threshold: 80 | 100, spent_inr: number, cap_inr: number) => {
      const data = { scope: 'key', scope_id: String(key.json.id), threshold, spent_inr, cap_inr, ...thisMonth() }
      return [
        [threshold === 80 ? 'budget.warn' : 'budget.block', data],
        ['usage.threshold', data],
      ]
    }
    const anyOrder = (lines: readonly unknown[]) => lines.map(line => JSON.stringify(line)).sort()
    const heardNow = async () => {
      await settled(app)
      const lines = crossings(org.path)
      receiver.forget()
      return anyOrder(lines)
    }
    app.alpha.script(spending(3))
    expect((await chat(key.json.key, 'alpha-only', { upstream_key: 'own-key-of-the-caller' })).status).toBe(200)
    expect(app.alpha.requests[0]?.headers.authorization).toBe('Bearer own-key-of-the-caller')
    expect(await heardNow()).toEqual(anyOrder([...told(80, 3, 1), ...told(100, 3, 1)]))
    const lowered = await app.call('POST', '/me/keys', {}, { cookie: org.cookie })
    app.alpha.script(spending(3))
    expect((await chat(lowered.json.key)).status).toBe(200)
    await settled(app)
    const cap = (inr: number) => app.call('POST', '/me/budgets', { scope: 'key', target_id: lowered.json.id, monthly_budget_inr: inr }, { cookie: org.cookie })
    expect((await cap(100)).status).toBe(200)
    expect(await heardNow()).toEqual([])
    await cap(3.5)
    expect((await heardNow()).map(line => JSON.parse(line)[1].threshold)).toEqual([80, 80])
    await cap(2)
    expect((await heardNow()).map(line => [JSON.parse(line)[0], JSON.parse(line)[1].cap_inr])).toEqual([
      ['budget.block', 2],
      ['usage.threshold', 2],
    ])
    await cap(1)
    expect(await heardNow()).toEqual([])
  })
})

describe('routes', () => {
  const isAvailable = async (provider: string): Promise<boolean> =>
    (await app.call('GET', '/v1/models/test-model')).json.routes.find((route: { provider: string }) => route.provider === provider).available
  const dialed = () => [app.alpha, app.beta, app.indus].map(upstream => upstream.requests.filter(({ method }) => method === 'POST').length)

  test('LIFE-01 consecutive failures open the circuit of a route: an event is sent, and plans try the route last', async () => {
    const org = await listeningOrg('Route Watchers', { event_types: ['provider.circuit_open'] })
    app.alpha.script(() => ({ status: 500 }))
    for (let count = 0; count < 4; count++) await chat(org.key, 'test-model')
    await settled(app)
    expect([await isAvailable('alpha'), at(org.path)]).toEqual([true, []])
    await chat(org.key, 'test-model')
    const openedMs = clock.nowMs()
    // Failures of one organisation do not open the circuit for others. When a second organisation has failures too, it opens for everybody.
    expect(await isAvailable('alpha')).toBe(true)
    const witness = await app.otherOrg('Second Witness')
    for (let count = 0; count < 5; count++) await chat(witness.key, 'test-model')
    expect(await isAvailable('alpha')).toBe(false)
    await receiver.untilReceived(1, org.path)
    await settled(app)
    const [event, more] = at(org.path)
    expect(more).toBe(undefined)
    expect(event?.data).toEqual({ provider: 'alpha', model: 'test-model', failures: 5, retry_at: expect.any(Number) })
    expect(Math.abs(event?.data.retry_at - (openedMs + 30_000) / 1000)).toBeLessThan(3)
    for (const upstream of [app.alpha, app.beta, app.indus]) upstream.reset()
    expect((await chat(org.key, 'test-model')).headers.get('x-br-provider')).toBe('beta')
    expect(dialed()).toEqual([0, 1, 0])
    app.beta.script({ status: 500 })
    app.indus.script({ status: 500 })
    expect((await chat(org.key, 'test-model')).headers.get('x-br-provider')).toBe('alpha')
    expect(dialed()).toEqual([1, 2, 1])
  })

  test('HOOK-21 every subscribed organisation receives the event once for each outage; an outage of an own server is sent only to its organisation', async () => {
    const params = { event_types: ['provider.circuit_open'] }
    const [one, two] = [await listeningOrg('Outage One', params), await listeningOrg('Outage Two')]
    const deaf = await listeningOrg('Outage Deaf', { event_types: ['key.created'] })
    const off = await listeningOrg('Outage Off')
    const [{ id }] = (await app.call('GET', '/me/webhooks', undefined, { cookie: off.cookie })).json.webhooks
    await app.call('PATCH', `/me/webhooks/${id}`, { enabled: false }, { cookie: off.cookie })
    const told = (path: string) => at(path, 'provider.circuit_open').map(({ org_id, data }) => [org_id, data.provider, data.model])
    /** Makes calls until the circuit opens. Then waits until the first organisation has received `openings` events. */
    const fail = async (openings: number, call: () => Promise<unknown>) => {
      for (let count = 0; count < 5; count++) await call()
      await receiver.untilReceived(openings, one.path)
      await settled(app)
    }
    app.alpha.script(() => ({ status: 500 }))
    const together = async () => {
      await chat(one.key)
      await chat(two.key)
    }
    await fail(1, together)
    await receiver.untilReceived(1, two.path)
    const expected = (...orgs: { orgId: number }[]) => orgs.map(({ orgId }) => [orgId, 'alpha', 'alpha-only'])
    expect([told(one.path), told(two.path), told(deaf.path), told(off.path)]).toEqual([expected(one), expected(two), [], []])
    // A failed probe continues the same outage.
    for (let probes = 0; probes < 2; probes++) {
      clock.advance(31_000)
      await chat(two.key)
    }
    await settled(app)
    expect([told(one.path).length, told(two.path).length]).toEqual([1, 1])
    // A successful call ends the outage. Later failures are another outage.
    app.alpha.reset()
    clock.advance(31_000)
    for (const { key } of [one, two]) expect((await chat(key)).status).toBe(200)
    app.alpha.script(() => ({ status: 500 }))
    await fail(2, together)
    await receiver.untilReceived(2, two.path)
    expect([told(one.path), told(two.path), told(deaf.path)]).toEqual([expected(one, one), expected(two, two), []])

    server.behave()
    const wanted = { name: 'Ours', model: 'test-model', base_url: server.url, upstream_model: 'own-model', key: 'own-server-key' }
    expect((await app.call('POST', '/me/endpoints', wanted, { cookie: one.cookie })).status).toBe(201)
    server.misbehave(() => ({ status: 500 }))
    receiver.forget()
    await fail(1, () => chat(one.key, 'test-model', { provider: 'byoe:ours' }))
    expect([told(one.path), told(two.path)]).toEqual([[[one.orgId, 'byoe:ours', 'test-model']], []])
  })
})

describe('anomalies', () => {
  test('HOOK-27 when spend, tokens or errors of an hour are far above the week before, one event is sent for each, and another when it happens again', async () => {
    const org = await listeningOrg('Spikers', { event_types: ['request.anomaly'] })
    const small = await listeningOrg('Small Spikers', { event_types: ['request.anomaly'] })
    const fresh = await listeningOrg('Fresh Spikers', { event_types: ['request.anomaly'] })
    const spend = async (key: string, inr: number) => {
      app.alpha.script(spending(inr))
      expect((await chat(key)).status).toBe(200)
    }
    const sweep = async () => {
      await app.gateway.app.jobs.runOnce('usage.anomalies')
      await settled(app)
    }
    await spend(org.key, 33.6)
    await spend(small.key, 0.1)
    await sweep()
    clock.advance(4 * 24 * hourMs)
    // This is five times the mean of an hour (₹0.35 over four days and one hour), but it is far below the minimum amount.
    await spend(org.key, 1.8)
    await spend(small.key, 1.8)
    await spend(fresh.key, 500)
    await sweep()
    expect([at(org.path), at(small.path), at(fresh.path)]).toEqual([[], [], []])
    await spend(org.key, 100)
    app.alpha.script(() => ({ status: 400, body: { error: { message: 'no' } } }))
    for (let round = 0; round < 5; round++) await Promise.all(Array.from({ length: 10 }, () => chat(org.key)))
    const before = clock.nowMs()
    await sweep()
    await sweep()
    const told = at(org.path)
    expect(told.map(({ data }) => data.metric).sort()).toEqual(['errors', 'spend', 'tokens'])
    const of = (metric: string) => told.find(({ data }) => data.metric === metric)?.data
    expect(of('spend')).toMatchObject({ observed: 101.8, baseline: expect.closeTo(0.35, 1), ratio: expect.any(Number) })
    expect(of('spend').ratio).toBeGreaterThan(5)
    expect([of('tokens').observed, of('errors')]).toEqual([101.8 * thoughtTokensPerInr, expect.objectContaining({ observed: 50, baseline: 0, ratio: null })])
    for (const { data, created } of told) {
      expect([data.window_end - data.window_start, created]).toEqual([3600, data.window_end])
      expect(Math.abs(data.window_end * 1000 - before)).toBeLessThan(5000)
    }
    // More than an hour later, the anomaly is over, and the next one is reported again.
    clock.advance(2 * hourMs)
    await sweep()
    await spend(org.key, 200)
    await sweep()
    expect(at(org.path).map(({ data }) => data.metric)).toHaveLength(5)
    expect([at(small.path), at(fresh.path)]).toEqual([[], []])
  })
})
