import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { statement } from '../../../../src/platform/db/db.ts'
import { startApp, type TestApp, type TestReply } from '../../../harness/app.ts'
import { movableClock } from '../../../harness/clock.ts'
import { until } from '../../../harness/until.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../../../harness/webhook-receiver.ts'
import { type Envelope, heard, listen, settled } from '../../webhooks/heard.ts'

const insertWorkspace = statement<[orgId: number], { id: number }>(
  'test.insert_workspace_of_periods',
  `insert into workspaces (org_id, name, created_at) values ($1::int, 'periods', now()) returning id`,
)

/** Noon of Wednesday 25 November 2026 in India. */
const noon = Date.parse('2026-11-25T06:30:00Z')
const hello = [{ role: 'user', content: 'Hello there' }]
/** The cost of one call of `alpha-only` with this usage: 100 tokens at ₹40 a million. */
const costInr = 0.004
const fixed = { usage: { prompt_tokens: 0, completion_tokens: 100, total_tokens: 100 } }
const at = (iso: string): number => Date.parse(iso)

/** Deliveries arrive in any order. The ids of events begin with their time. */
const inOrder = (events: readonly Envelope[]): Envelope[] => [...events].sort((a, b) => (a.id < b.id ? -1 : 1))

interface Listed {
  readonly scope: string
  readonly id: string
  readonly period: string
  readonly spent_inr: number
  readonly resets_at: string | null
}

describe('periods of budgets', () => {
  const clock = movableClock(noon)
  let receiver: WebhookReceiver
  let app: TestApp
  beforeAll(async () => {
    receiver = await startWebhookReceiver()
    app = await startApp({ clock, env: { OUTBOUND_ALLOW: receiver.hostPort, WEBHOOK_POLL_MS: '20' } })
  })
  afterAll(async () => {
    await app.stop()
    await receiver.close()
  })
  beforeEach(() => {
    clock.moveTo(noon)
    for (const upstream of [app.alpha, app.beta, app.indus]) upstream.reset()
    app.alpha.script(() => fixed)
  })
  afterEach(() => app.alpha.release())

  const set = (body: object, cookie: string) => app.call('POST', '/me/budgets', body, { cookie })
  const chat = (token: string, headers: Record<string, string> = {}) =>
    app.call('POST', '/v1/chat/completions', { model: 'alpha-only', messages: hello, max_tokens: 100 }, { token, headers })
  const said = ({ status, json }: TestReply) => [status, json?.error?.code]
  /** Calls until one is refused because a budget is spent, not because of holds. */
  const untilRefused = async (token: string, headers: Record<string, string> = {}): Promise<TestReply> => {
    let reply = await chat(token, headers)
    for (let i = 0; i < 60 && (reply.status === 200 || reply.headers.get('retry-after') === '5'); i++) reply = await chat(token, headers)
    return reply
  }
  const newOrg = async (name: string) => {
    const org = await app.otherOrg(name)
    return { ...org, cookie: await app.signIn(org.userId, org.orgId) }
  }
  const list = async (cookie: string, query = ''): Promise<Listed[]> => (await app.call('GET', `/me/budgets${query}`, undefined, { cookie })).json.budgets
  const spentBy = async (cookie: string): Promise<Record<string, number>> =>
    Object.fromEntries((await list(cookie)).map(({ period, spent_inr }) => [period, spent_inr]))

  test('PERI-01 budgets of a day, a week, a month and for ever on one key all hold, and each says when it resets, in the time zone of the organisation', async () => {
    const { key, keyId, cookie } = await newOrg('All Periods')
    const caps = { day: 2, week: 3, month: 4, ever: 5 }
    for (const [period, calls] of Object.entries(caps)) {
      const made = await set({ scope: 'key', target_id: keyId, period, budget_inr: calls * costInr }, cookie)
      expect([made.status, made.json.budget?.period], made.text).toEqual([200, period])
    }
    const ends = { ever: null, month: '2026-11-30T18:30:00.000Z', week: '2026-11-29T18:30:00.000Z', day: '2026-11-25T18:30:00.000Z' }
    const endsOf = (budgets: readonly Listed[]) => budgets.map(({ period, resets_at }) => [period, resets_at])
    expect(endsOf(await list(cookie))).toEqual(Object.entries(ends))
    expect(endsOf((await app.call('GET', '/v1/me/budgets', undefined, { token: key })).json.budgets)).toEqual(Object.entries(ends))
    const served = app.alpha.requests.length
    const refusedBy = async () => {
      const reply = await untilRefused(key)
      expect(said(reply)).toEqual([429, 'budget_exceeded'])
      expect(reply.headers.get('x-should-retry')).toBe('false')
      return [reply.json.scope, reply.json.period, reply.json.resets_at, app.alpha.requests.length - served]
    }
    expect(await refusedBy()).toEqual(['key', 'day', ends.day, 2])
    clock.moveTo(at('2026-11-26T04:00:00Z'))
    expect(await refusedBy()).toEqual(['key', 'week', ends.week, 3])
    // The next Monday is in the same month.
    clock.moveTo(at('2026-11-29T18:30:01Z'))
    expect(await refusedBy()).toEqual(['key', 'month', ends.month, 4])
    clock.moveTo(at('2026-11-30T18:30:01Z'))
    expect(await refusedBy()).toEqual(['key', 'ever', null, 5])
    expect((await chat(key)).headers.get('retry-after')).toBe('86400')
    expect(await spentBy(cookie)).toEqual({ ever: 5 * costInr, month: costInr, week: 2 * costInr, day: costInr })
    // The old field sets the month, and null removes a budget of one period only.
    expect((await set({ scope: 'key', target_id: keyId, monthly_budget_inr: 7 }, cookie)).json.budget).toMatchObject({ period: 'month', cap_inr: 7 })
    expect((await set({ scope: 'key', target_id: keyId, period: 'ever', budget_inr: null }, cookie)).json.budget).toMatchObject({
      period: 'ever',
      cap_inr: null,
    })
    expect((await list(cookie)).map(({ period }) => period)).toEqual(['month', 'week', 'day'])
    expect((await chat(key)).status).toBe(200)
    expect((await app.call('PUT', '/me/budgets/time-zone', { time_zone: 'Europe/Berlin' }, { cookie })).status).toBe(200)
    clock.moveTo(at('2026-12-01T18:30:01Z'))
    expect(endsOf(await list(cookie))).toEqual([
      ['month', '2026-12-31T18:30:00.000Z'],
      ['week', '2026-12-06T18:30:00.000Z'],
      ['day', '2026-12-01T23:00:00.000Z'],
    ])
  })

  test('every scope can have a budget of every period, and a refused call holds nothing in the others', async () => {
    const { key, keyId, userId, orgId, cookie } = await newOrg('All Scopes')
    const { id: workspaceId } = await app.db.one(insertWorkspace, orgId)
    const bound = await app.gateway.app.keys.create({ orgId, userId, workspaceId, name: 'bound', scope: 'full', rpmLimit: null, dailyLimit: null })
    const agent = (await app.call('POST', '/v1/me/agents', { name: 'of periods' }, { token: key })).json
    const targets = { org: undefined, workspace: workspaceId, member: userId, key: bound.id, agent: agent.id }
    const put = (scope: string, period: string, inr: number | null) =>
      set({ scope, target_id: targets[scope as keyof typeof targets], period, budget_inr: inr }, cookie)
    for (const scope of Object.keys(targets)) for (const period of ['day', 'week', 'ever']) expect((await put(scope, period, 1000)).status, scope).toBe(200)
    const names = { 'x-br-agent-id': 'of periods' }
    expect((await chat(bound.key, names)).status).toBe(200)
    const spent = async () => (await list(cookie)).map(budget => budget.spent_inr)
    expect(await spent()).toEqual(Array.from({ length: 15 }, () => costInr))
    for (const [i, scope] of Object.keys(targets).entries()) {
      const period = ['day', 'week', 'ever'][i % 3] ?? ''
      const before = await spent()
      expect((await put(scope, period, costInr / 2)).status).toBe(200)
      const refused = await untilRefused(bound.key, names)
      expect([refused.status, refused.json.scope, refused.json.period]).toEqual([429, scope, period])
      expect(await spent()).toEqual(before)
      expect((await list(cookie)).every(budget => (budget as unknown as { held_inr: number }).held_inr === 0)).toBe(true)
      await put(scope, period, 1000)
    }
    // Pages continue between the periods of a scope, in both orders.
    for (const sort of ['scope', 'cap']) {
      const walked: string[] = []
      for (let cursor = ''; ; ) {
        const { json } = await app.call('GET', `/me/budgets?limit=4&sort=${sort}${cursor}`, undefined, { cookie })
        walked.push(...json.budgets.map((budget: Listed) => `${budget.scope} ${budget.period}`))
        if (json.next_cursor === null) break
        cursor = `&cursor=${encodeURIComponent(json.next_cursor)}`
      }
      expect(new Set(walked).size, sort).toBe(15)
      expect(walked.length, sort).toBe(15)
    }
    await put('agent', 'day', costInr / 2)
    expect((await list(cookie, '?state=blocked')).map(({ scope, period }) => [scope, period])).toEqual([['agent', 'day']])
    expect(keyId).not.toBe(bound.id)
  })

  test('a budget of a period has the roles, targets and bounds of a monthly one, and names what is wrong with its fields', async () => {
    const { key, keyId, cookie } = await newOrg('Bounds')
    const other = await newOrg('Other Bounds')
    const body = { scope: 'key', target_id: keyId, period: 'day', budget_inr: 1 }
    const member = await app.newMember('member')
    expect(said(await set({ ...body, target_id: app.keyId }, member.cookie))).toEqual([403, 'forbidden'])
    expect(said(await set(body, other.cookie))).toEqual([404, 'not_found'])
    for (const wrong of [
      { period: 'hour' },
      { period: undefined },
      { budget_inr: undefined },
      { monthly_budget_inr: 1 },
      { budget_inr: 0 },
      { budget_inr: -1 },
      { budget_inr: 1e10 },
      { warn_percent: [0] },
      { warn_percent: [100] },
      { warn_percent: [1.5] },
      { warn_percent: Array.from({ length: 11 }, (_, i) => i + 1) },
    ])
      expect(said(await set({ ...body, ...wrong }, cookie)), JSON.stringify(wrong)).toEqual([400, 'bad_request'])
    expect(await list(cookie)).toEqual([])
    const agent = (await app.call('POST', '/v1/me/agents', { name: 'gone' }, { token: key })).json
    await app.call('POST', `/v1/me/agents/${agent.id}/revoke`, {}, { token: key })
    expect(said(await set({ scope: 'agent', target_id: agent.id, period: 'ever', budget_inr: 1 }, cookie))).toEqual([409, 'agent_revoked'])
  })

  test('a call that runs while the week turns belongs to the day and the week of its admission', async () => {
    const { key, keyId, cookie } = await newOrg('Turn')
    for (const period of ['day', 'week', 'month']) await set({ scope: 'key', target_id: keyId, period, budget_inr: 1 }, cookie)
    const beforeTurn = at('2026-11-29T18:29:50Z')
    clock.moveTo(beforeTurn)
    app.alpha.hold()
    const running = chat(key)
    await until(() => app.alpha.requests.length === 1, 'the call is at the provider')
    clock.moveTo(at('2026-11-29T18:30:10Z'))
    app.alpha.release()
    expect((await running).status).toBe(200)
    expect(await spentBy(cookie)).toEqual({ day: 0, week: 0, month: costInr })
    expect((await chat(key)).status).toBe(200)
    expect(await spentBy(cookie)).toEqual({ day: costInr, week: costInr, month: 2 * costInr })
    clock.moveTo(beforeTurn)
    expect(await spentBy(cookie)).toEqual({ day: costInr, week: costInr, month: 2 * costInr })
  })

  test('only the owner sets the time zone of budgets, and it holds from the next turn of each period', async () => {
    const { key, keyId, cookie, orgId } = await newOrg('Zones')
    const zone = (credential: string, time_zone: unknown) => app.call('PUT', '/me/budgets/time-zone', { time_zone }, { cookie: credential })
    const ends = async () => (await app.call('GET', '/me/budgets/time-zone', undefined, { cookie })).json
    const admin = await app.newMember('admin')
    expect(said(await zone(admin.cookie, 'Europe/Berlin'))).toEqual([403, 'forbidden'])
    for (const wrong of ['', '+05:30', 'Europe/Nowhere', 'x'.repeat(65), 5, null])
      expect(said(await zone(cookie, wrong)), String(wrong)).toEqual([400, 'bad_request'])
    for (const period of ['day', 'week', 'month']) await set({ scope: 'key', target_id: keyId, period, budget_inr: 1 }, cookie)
    expect((await chat(key)).status).toBe(200)
    const made = await zone(cookie, 'Europe/Berlin')
    expect(made.json).toEqual({
      ok: true,
      time_zone: 'Europe/Berlin',
      periods: [
        { period: 'month', time_zone: 'Asia/Kolkata', resets_at: '2026-11-30T18:30:00.000Z' },
        { period: 'week', time_zone: 'Asia/Kolkata', resets_at: '2026-11-29T18:30:00.000Z' },
        { period: 'day', time_zone: 'Asia/Kolkata', resets_at: '2026-11-25T18:30:00.000Z' },
      ],
    })
    // The running day goes on: it has spent money.
    expect((await chat(key)).status).toBe(200)
    expect(await spentBy(cookie)).toEqual({ day: 2 * costInr, week: 2 * costInr, month: 2 * costInr })
    clock.moveTo(at('2026-11-25T18:30:00Z'))
    expect((await ends()).periods.map(({ period, time_zone, resets_at }: Record<string, string>) => [period, time_zone, resets_at])).toEqual([
      ['month', 'Asia/Kolkata', '2026-11-30T18:30:00.000Z'],
      ['week', 'Asia/Kolkata', '2026-11-29T18:30:00.000Z'],
      ['day', 'Europe/Berlin', '2026-11-25T23:00:00.000Z'],
    ])
    expect((await chat(key)).status).toBe(200)
    expect(await spentBy(cookie)).toEqual({ day: costInr, week: 3 * costInr, month: 3 * costInr })
    // In December the month is that of Berlin, and so is its refusal.
    clock.moveTo(at('2026-12-10T12:00:00Z'))
    await set({ scope: 'key', target_id: keyId, monthly_budget_inr: costInr }, cookie)
    const refused = await untilRefused(key)
    expect([refused.status, refused.json.period, refused.json.resets_at]).toEqual([429, 'month', '2026-12-31T23:00:00.000Z'])
    expect((await list(cookie)).find(({ period }) => period === 'month')).toMatchObject({ spent_inr: costInr, resets_at: '2026-12-31T23:00:00.000Z' })
    // The month of India that reports show does not depend on it.
    const keys = (await app.call('GET', '/me/keys', undefined, { cookie })).json.keys
    expect(keys.find(({ id }: { id: number }) => id === keyId).spend_month_inr).toBe(costInr)
    expect(orgId).toBeGreaterThan(0)
  })

  test('a day on which clocks change has 23 or 25 hours', async () => {
    const { key, keyId, cookie, userId, orgId } = await newOrg('Daylight')
    await app.call('PUT', '/me/budgets/time-zone', { time_zone: 'America/New_York' }, { cookie })
    await set({ scope: 'key', target_id: keyId, period: 'day', budget_inr: costInr }, cookie)
    const day = async () => (await list(await app.signIn(userId, orgId)))[0]
    for (const [first, last, end] of [
      ['2027-03-14T05:00:00Z', '2027-03-15T03:59:59Z', '2027-03-15T04:00:00.000Z'],
      ['2027-11-07T04:00:00Z', '2027-11-08T04:59:59Z', '2027-11-08T05:00:00.000Z'],
    ] as const) {
      clock.moveTo(at(first))
      expect((await chat(key)).status).toBe(200)
      clock.moveTo(at(last) - 5_000)
      const refused = await untilRefused(key)
      expect([refused.status, refused.json.resets_at]).toEqual([429, end])
      expect(await day()).toMatchObject({ spent_inr: costInr, resets_at: end })
      clock.moveTo(at(end))
      expect(await day()).toMatchObject({ spent_inr: 0 })
      expect((await chat(key)).status).toBe(200)
    }
  })

  test('PERI-02 a run over midnight is one run with each call in its own day, a spent day refuses until midnight, a running call stays in its week, and a new time zone holds from the next turn, also on a day of 23 hours', async () => {
    const { key, keyId, cookie, userId, orgId } = await newOrg('Turns')
    for (const [period, calls] of Object.entries({ day: 2, week: 100, month: 100 }))
      await set({ scope: 'key', target_id: keyId, period, budget_inr: calls * costInr }, cookie)
    const run = { 'x-br-run-id': 'over midnight' }
    const midnight = at('2026-11-25T18:30:00Z')

    // Two calls of the run pay for Wednesday, and the third waits for midnight.
    clock.moveTo(midnight - 60_000)
    for (let i = 0; i < 2; i++) expect((await chat(key, run)).status).toBe(200)
    const refused = await untilRefused(key, run)
    expect([...said(refused), refused.json.period, refused.json.resets_at]).toEqual([429, 'budget_exceeded', 'day', '2026-11-25T18:30:00.000Z'])
    expect(Number(refused.headers.get('retry-after'))).toBeLessThanOrEqual(60)
    expect(refused.headers.get('x-should-retry')).toBe('false')
    clock.moveTo(midnight)
    expect((await chat(key, run)).status).toBe(200)
    expect(await spentBy(cookie)).toEqual({ day: costInr, week: 3 * costInr, month: 3 * costInr })
    await settled(app)
    const { runs } = (await app.call('GET', '/v1/me/runs', undefined, { token: key })).json
    expect(runs).toEqual([
      expect.objectContaining({
        run_id: 'over midnight',
        calls: 3,
        value_inr: 3 * costInr,
        first_at: expect.stringMatching(/^2026-11-25T18:29:/),
        last_at: expect.stringMatching(/^2026-11-25T18:30:0/),
      }),
    ])
    const { by_day } = (await app.call('GET', '/v1/usage?group_by=day', undefined, { token: key })).json
    expect(by_day.map(({ day, requests }: Record<string, unknown>) => [day, requests])).toEqual([
      ['2026-11-25', 2],
      ['2026-11-26', 1],
    ])

    // The owner changes the zone at noon. The running day ends as it was promised.
    clock.moveTo(at('2026-11-26T06:30:00Z'))
    expect((await app.call('PUT', '/me/budgets/time-zone', { time_zone: 'America/New_York' }, { cookie })).status).toBe(200)
    const ends = async () => Object.fromEntries((await list(cookie)).map(({ period, resets_at }) => [period, resets_at]))
    expect(await ends()).toEqual({ day: '2026-11-26T18:30:00.000Z', week: '2026-11-29T18:30:00.000Z', month: '2026-11-30T18:30:00.000Z' })
    expect((await chat(key, run)).status).toBe(200)
    expect(await spentBy(cookie)).toMatchObject({ day: 2 * costInr })
    clock.moveTo(at('2026-11-26T18:30:00Z'))
    expect(await ends()).toMatchObject({ day: '2026-11-27T05:00:00.000Z', week: '2026-11-29T18:30:00.000Z' })
    expect(await spentBy(cookie)).toMatchObject({ day: 0, week: 4 * costInr })

    // A call that runs while the week turns belongs to the week of its admission.
    clock.moveTo(at('2026-11-29T18:29:50Z'))
    app.alpha.hold()
    const sent = app.alpha.requests.length
    const running = chat(key, run)
    await until(() => app.alpha.requests.length === sent + 1, 'the call is at the provider')
    clock.moveTo(at('2026-11-29T18:30:10Z'))
    app.alpha.release()
    expect((await running).status).toBe(200)
    expect(await spentBy(cookie)).toMatchObject({ week: 0, month: 5 * costInr })

    // Clocks go forward on 14 March 2027 in New York.
    clock.moveTo(at('2027-03-14T05:00:00Z'))
    expect((await chat(key, run)).status).toBe(200)
    const later = await app.signIn(userId, orgId)
    expect((await list(later)).find(({ period }) => period === 'day')).toMatchObject({ spent_inr: costInr, resets_at: '2027-03-15T04:00:00.000Z' })
  })

  test('PERI-03 a budget sends an event at each of its marks, once in a period, beside those at 80 and 100 percent', async () => {
    const org = await newOrg('Marks')
    const path = '/marks'
    await listen(app, receiver, path, { event_types: ['budget.warn', 'budget.block', 'usage.threshold'] }, org.cookie)
    const { keyId, key, cookie } = org
    const made = await set({ scope: 'key', target_id: keyId, period: 'day', budget_inr: 10 * costInr, warn_percent: [80, 50, 30, 50] }, cookie)
    expect(made.json.budget).toMatchObject({ warn_percent: [30, 50, 80] })
    const told = async () => {
      await settled(app)
      return inOrder(heard(receiver, path))
        .filter(({ type }) => type !== 'usage.threshold')
        .map(({ type, data }) => `${type} ${data.threshold} ${data.period} ${data.resets_at}`)
    }
    const day = 'day 2026-11-25T18:30:00.000Z'
    const calls = async (count: number) => {
      for (let i = 0; i < count; i++) expect((await chat(key)).status).toBe(200)
      return told()
    }
    expect(await calls(2)).toEqual([])
    expect(await calls(1)).toEqual([`budget.warn 30 ${day}`])
    expect(await calls(2)).toEqual([`budget.warn 30 ${day}`, `budget.warn 50 ${day}`])
    // A mark that an owner adds below the spend fires with the change, and marks that fired before do not.
    await set({ scope: 'key', target_id: keyId, period: 'day', budget_inr: 10 * costInr, warn_percent: [20, 30, 50] }, cookie)
    expect(await calls(0)).toEqual([`budget.warn 30 ${day}`, `budget.warn 50 ${day}`, `budget.warn 20 ${day}`])
    expect((await calls(5)).slice(3)).toEqual([`budget.warn 80 ${day}`, `budget.block 100 ${day}`])
    const all = inOrder(heard(receiver, path))
    expect(all.filter(({ type }) => type === 'usage.threshold').map(({ data }) => data.threshold)).toEqual([30, 50, 20, 80, 100])
    // What is left out stays, and a new day has its own marks.
    await set({ scope: 'key', target_id: keyId, period: 'day', budget_inr: 2 * costInr }, cookie)
    clock.moveTo(at('2026-11-25T18:30:01Z'))
    const next = 'day 2026-11-26T18:30:00.000Z'
    expect((await calls(1)).slice(5)).toEqual([20, 30, 50].map(mark => `budget.warn ${mark} ${next}`))
  })
})
