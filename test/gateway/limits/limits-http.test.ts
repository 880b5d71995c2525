import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { statement } from '../../../src/platform/db/db.ts'
import { startApp, type TestApp, type TestReply } from '../../harness/app.ts'
import { movableClock } from '../../harness/clock.ts'
import { type S3TestServer, startS3Server } from '../../harness/s3-server.ts'
import { pathOf, useStore } from '../../memory/rights-people.ts'

const events = statement<[orgId: number], { type: string; data: { scope: string; threshold: number; spent_inr: number; cap_inr: number } }>(
  'test.outbox',
  `select type, data from webhook_events where org_id = $1::int and type like 'budget.%' order by created, id`,
)
const hello = [{ role: 'user', content: 'Hello there' }]
/** 09:15 on 21 November 2026 in India. */
const morning = Date.UTC(2026, 10, 21, 3, 45, 1)
const hourMs = 3600_000

describe('limits and budgets over HTTP', () => {
  const clock = movableClock(morning)
  let app: TestApp
  let store: S3TestServer
  beforeAll(async () => {
    store = await startS3Server()
    app = await startApp({ clock, env: { OUTBOUND_ALLOW: store.hostPort } })
  })
  afterAll(async () => {
    await app.stop()
    await store.close()
  })
  beforeEach(() => {
    for (const upstream of [app.alpha, app.beta, app.indus]) upstream.reset()
  })
  const chat = (token: string, body: object = {}) =>
    app.call('POST', '/v1/chat/completions', { model: 'test-model', messages: hello, max_tokens: 50, ...body }, { token })
  const statusOf = async (reply: Promise<TestReply>) => {
    const { status, json } = await reply
    return status === 200 ? 200 : [status, json.error.code]
  }

  test('KEY-20 HDR-08 ERR-06 a key above its requests per minute gets 429 rate_limit_exceeded with retry-after, and is served in the next minute', async () => {
    clock.moveTo(morning)
    const { key } = await app.newKey({ rpm: 3 })
    for (let i = 0; i < 3; i++) expect((await chat(key)).status).toBe(200)
    const refused = await chat(key)
    expect([refused.status, refused.json.error.code, refused.json.error.type]).toEqual([429, 'rate_limit_exceeded', 'rate_limit_error'])
    const wait = Number(refused.headers.get('retry-after'))
    expect(Number.isInteger(wait) && wait >= 1 && wait <= 60).toBe(true)
    clock.advance(60_000)
    expect((await chat(key)).status).toBe(200)
  })

  test('LIM-12 the limit of requests per minute also applies to other endpoints: usage, budgets, agents and memory', async () => {
    clock.moveTo(morning + hourMs)
    await useStore(app, store)
    for (const [method, path, body] of [
      ['GET', '/v1/usage'],
      ['GET', '/v1/usage.csv'],
      ['GET', '/v1/me/budgets'],
      ['GET', '/v1/me/whoami'],
      ['GET', '/v1/me/profile'],
      ['GET', '/v1/me/agents'],
      ['POST', '/v1/me/agents', { name: 'rated' }],
      ['GET', '/v1/me/memory/paths'],
      ['GET', '/v1/me/memory/list'],
      ['PUT', pathOf('agents/rated'), 'noted'],
      ['GET', pathOf('agents/rated')],
      ['DELETE', pathOf('agents/rated')],
    ] as const) {
      const { key } = await app.newKey({ rpm: 2 })
      const statuses: number[] = []
      for (let i = 0; i < 2; i++) statuses.push((await app.call(method, path, body, { token: key })).status)
      expect(
        statuses.every(status => status < 300 || status === 404),
        `${method} ${path}: ${statuses}`,
      ).toBe(true)
      expect(statuses[0], `${method} ${path}`).toBeLessThan(300)
      expect(await statusOf(app.call(method, path, body, { token: key })), `${method} ${path}`).toEqual([429, 'rate_limit_exceeded'])
      clock.advance(60_000)
      expect((await app.call(method, path, body, { token: key })).status, `${method} ${path}`).not.toBe(429)
    }
  })

  test('LIM-12 a used-up daily limit or a spent budget refuses only inference, and usage, budgets, agents and memory still work', async () => {
    clock.moveTo(morning + 1.5 * hourMs)
    await useStore(app, store)
    const tired = await app.newKey({ daily: 1 })
    expect((await chat(tired.key)).status).toBe(200)
    expect(await statusOf(chat(tired.key))).toEqual([429, 'daily_limit_reached'])
    const poor = await app.newKey({ budgetInr: 0.000001 })
    await chat(poor.key)
    expect(await statusOf(chat(poor.key))).toEqual([429, 'budget_exceeded'])
    for (const { key: token } of [tired, poor]) {
      for (const path of ['/v1/usage', '/v1/me/budgets', '/v1/me/agents', '/v1/me/whoami', '/v1/me/memory/list'])
        expect((await app.call('GET', path, undefined, { token })).status, path).toBe(200)
      expect((await app.call('POST', '/v1/me/agents', { name: `of ${token.slice(-6)}` }, { token })).status).toBe(201)
      expect((await app.call('PUT', pathOf('agents/kept'), `by ${token.slice(-6)}`, { token })).status).toBe(200)
      expect((await app.call('GET', pathOf('agents/kept'), undefined, { token })).text).toBe(`by ${token.slice(-6)}`)
    }
    expect(await statusOf(chat(tired.key))).toEqual([429, 'daily_limit_reached'])
    expect(await statusOf(chat(poor.key))).toEqual([429, 'budget_exceeded'])
  })

  test('KEY-21 LIM-05 ERR-07 a used-up daily limit lasts until midnight in India, 18:30 UTC, and the refusal says so', async () => {
    clock.moveTo(Date.UTC(2026, 10, 21, 18, 29, 0))
    const { key } = await app.newKey({ daily: 2 })
    expect((await chat(key)).status).toBe(200)
    expect((await chat(key)).status).toBe(200)
    const refused = await chat(key)
    expect([refused.status, refused.json.error.code]).toEqual([429, 'daily_limit_reached'])
    expect(refused.headers.get('x-should-retry')).toBe('false')
    const wait = Number(refused.headers.get('retry-after'))
    expect(wait).toBeGreaterThan(30)
    expect(wait).toBeLessThanOrEqual(60)
    clock.moveTo(Date.UTC(2026, 10, 21, 18, 30, 1))
    expect((await chat(key)).status).toBe(200)
  })

  test('LIM-11 a refused call does not count against the daily limit', async () => {
    clock.moveTo(morning + 2 * hourMs)
    const { key } = await app.newKey({ daily: 3, rpm: 2 })
    for (let i = 0; i < 2; i++) expect((await chat(key)).status).toBe(200)
    for (let i = 0; i < 5; i++) expect(await statusOf(chat(key))).toEqual([429, 'rate_limit_exceeded'])
    clock.advance(60_000)
    expect((await chat(key)).status).toBe(200)
    expect(await statusOf(chat(key))).toEqual([429, 'daily_limit_reached'])
    const poor = await app.newKey({ daily: 2, budgetInr: 0.000001 })
    await chat(poor.key)
    for (let i = 0; i < 4; i++) expect((await chat(poor.key)).json.error.code).toBe('budget_exceeded')
  })

  test('LIM-06 limits of a key that an admin changes over HTTP apply to the next call', async () => {
    clock.moveTo(morning + 3 * hourMs)
    const { key, keyId } = await app.newKey({ rpm: 1 })
    const { cookie } = await app.newMember('admin')
    const change = async (limits: object) => expect((await app.call('PATCH', `/me/keys/${keyId}`, limits, { cookie })).status).toBe(200)
    expect((await chat(key)).status).toBe(200)
    expect(await statusOf(chat(key))).toEqual([429, 'rate_limit_exceeded'])
    await change({ rpm_limit: 100, daily_limit: 4 })
    for (let i = 0; i < 3; i++) expect(await statusOf(chat(key))).toBe(200)
    await change({ daily_limit: 2 })
    expect(await statusOf(chat(key))).toEqual([429, 'daily_limit_reached'])
    await change({ daily_limit: null, budget_inr: 0.000001 })
    expect(await statusOf(chat(key))).toEqual([429, 'budget_exceeded'])
    await change({ budget_inr: null })
    expect(await statusOf(chat(key))).toBe(200)
    await change({ enabled: false })
    expect((await chat(key)).status).toBe(401)
    await change({ enabled: true })
    expect(await statusOf(chat(key))).toBe(200)
  })

  test('KEY-22 BUDG-02 a spent budget is 429 budget_exceeded with the figures of the refusing scope, until the month ends', async () => {
    clock.moveTo(morning + 4 * hourMs)
    const { key, keyId } = await app.newKey({ budgetInr: 0.003 })
    let refused = await chat(key)
    for (let i = 0; i < 50 && refused.status === 200; i++) refused = await chat(key)
    expect([refused.status, refused.json.error.code]).toEqual([429, 'budget_exceeded'])
    while (Number(refused.headers.get('retry-after')) === 5) refused = await chat(key)
    expect(refused.json).toMatchObject({ scope: 'key', cap_inr: 0.003, held_inr: 0, in_doubt_inr: 0, resets_at: '2026-11-30T18:30:00.000Z' })
    expect(refused.json.spent_inr).toBeGreaterThanOrEqual(0.003)
    expect(refused.headers.get('x-should-retry')).toBe('false')
    const monthEnd = Date.UTC(2026, 10, 30, 18, 30)
    expect(Math.abs(Number(refused.headers.get('retry-after')) - (monthEnd - clock.nowMs()) / 1000)).toBeLessThan(10)
    const [budget] = (await app.call('GET', '/v1/me/budgets', undefined, { token: key })).json.budgets
    expect(budget).toMatchObject({ scope: 'key', id: String(keyId), cap_inr: 0.003, state: 'blocked', remaining_inr: 0 })
  })

  test('BUDG-09 the month ends at 18:30 UTC of its last day, and a blocked budget admits calls again', async () => {
    clock.moveTo(Date.UTC(2026, 11, 31, 18, 29, 30))
    const { key } = await app.newKey({ budgetInr: 0.001 })
    let reply = await chat(key)
    for (let i = 0; i < 50 && reply.status === 200; i++) reply = await chat(key)
    expect(reply.json.error.code).toBe('budget_exceeded')
    clock.moveTo(Date.UTC(2026, 11, 31, 18, 30, 1))
    expect((await chat(key)).status).toBe(200)
    clock.moveTo(morning + 5 * hourMs)
  })

  test('BUDG-10 a raised cap admits the next call', async () => {
    clock.moveTo(morning + 5 * hourMs)
    const { key, keyId } = await app.newKey({ budgetInr: 0.001 })
    let reply = await chat(key)
    for (let i = 0; i < 50 && reply.status === 200; i++) reply = await chat(key)
    expect(reply.status).toBe(429)
    await app.setBudget('key', keyId, 10)
    expect((await chat(key)).status).toBe(200)
    await app.setBudget('key', keyId, null)
    expect((await chat(key)).status).toBe(200)
  })

  test('BUDG-01 BUDG-03 a budget sends one warning at 80 % and then one block at 100 % in a month, even if one call crosses both', async () => {
    clock.moveTo(morning + 6 * hourMs)
    const other = await app.otherOrg('Crossing')
    const big = {
      body: {
        id: 'x',
        object: 'chat.completion',
        model: 'm',
        choices: [{ index: 0, message: { role: 'assistant', content: 'x' }, finish_reason: 'stop' }],
        usage: { prompt_tokens: 0, completion_tokens: 50, total_tokens: 50 },
      },
    }
    app.alpha.script(Array.from({ length: 4 }, () => big))
    await app.gateway.app.limits.budgets.set(other.orgId, 'org', String(other.orgId), 1500n)
    for (let i = 0; i < 3; i++) await chat(other.key)
    await app.gateway.app.limits.flushNow()
    const fired = await app.db.many(events, other.orgId)
    expect(fired.map(event => event.type)).toEqual(['budget.warn', 'budget.block'])
    expect(fired[1]?.data).toMatchObject({ scope: 'org', threshold: 100, cap_inr: 0.0015, spent_inr: expect.any(Number) })
  })

  test("BUDG-08 a call on the caller's own provider key counts in budgets and is not charged", async () => {
    clock.moveTo(morning + 7 * hourMs)
    const { key } = await app.newKey({ budgetInr: 1 })
    const own = await chat(key, { provider: 'alpha', upstream_key: 'sk-own-credential-1' })
    expect(own.status).toBe(200)
    const [budget] = (await app.call('GET', '/v1/me/budgets', undefined, { token: key })).json.budgets
    expect(budget.spent_inr).toBeGreaterThan(0)
  })

  test('BUDX-04 retry-after is 5 s when running calls hold the rest of a budget, and the end of the month when it is spent', async () => {
    clock.moveTo(morning + 9 * hourMs)
    const agent = await app.newAgent('reader of figures')
    await app.setBudget('agent', agent.id, 0.004)
    const token = (await app.call('POST', `/v1/me/agents/${agent.id}/token`, {})).json.access_token
    const resetsAt = '2026-11-30T18:30:00.000Z'
    // 100 tokens at the price of alpha cost ₹0.0040, so the hold takes the whole budget.
    app.alpha.script([{ hold: true, usage: { prompt_tokens: 0, completion_tokens: 100, total_tokens: 100 } }])
    const running = chat(token, { model: 'alpha-only', max_tokens: 100 })
    await app.alpha.arrived(1)
    const held = await chat(token, { model: 'alpha-only', max_tokens: 100 })
    expect([held.status, held.json.error.code]).toEqual([429, 'agent_budget_exceeded'])
    expect(held.json).toMatchObject({ scope: 'agent', cap_inr: 0.004, spent_inr: 0, in_doubt_inr: 0, resets_at: resetsAt })
    expect(held.json.held_inr).toBeGreaterThanOrEqual(0.004)
    expect([held.headers.get('retry-after'), held.headers.get('x-should-retry')]).toEqual(['5', 'true'])
    app.alpha.release()
    expect((await running).status).toBe(200)
    let spent = await chat(token, { model: 'alpha-only', max_tokens: 100 })
    while (spent.headers.get('retry-after') === '5') spent = await chat(token, { model: 'alpha-only', max_tokens: 100 })
    expect([spent.status, spent.json.error.code, spent.headers.get('x-should-retry')]).toEqual([429, 'agent_budget_exceeded', 'false'])
    expect(spent.json).toMatchObject({ scope: 'agent', cap_inr: 0.004, spent_inr: 0.004, held_inr: 0, in_doubt_inr: 0, resets_at: resetsAt })
    expect(Math.abs(Number(spent.headers.get('retry-after')) - (Date.parse(resetsAt) - clock.nowMs()) / 1000)).toBeLessThan(10)
  })
})
