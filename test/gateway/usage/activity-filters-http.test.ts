/** The filters and groups of GET /me/activity: what sums answer, what single calls answer, and what is refused. */
import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { eventsMax } from '../../../src/gateway/usage/activity/activity-filters.ts'
import { insertUsageEvents } from '../../../src/gateway/usage/events/apply.ts'
import type { Outcome, UsageEvent } from '../../../src/gateway/usage/events/record.ts'
import { deleteOldHours } from '../../../src/gateway/usage/events/usage-retention.ts'
import { keepsRollups } from '../../../src/gateway/usage/rollups/rollups.ts'
import { statement } from '../../../src/platform/db/db.ts'
import { systemIds } from '../../../src/platform/values/ids.ts'
import { startApp, type TestApp } from '../../harness/app.ts'
import { movableClock } from '../../harness/clock.ts'
import { propertyRuns } from '../../harness/property-runs.ts'
import { eventOf, request } from '../limits/engine.ts'

/** Noon of 22 November 2026 in India. */
const noon = Date.UTC(2026, 10, 22, 6, 30)
const hourMs = 3600_000
const dayMs = 24 * hourMs

const clock = movableClock(noon)
let app: TestApp
beforeAll(async () => {
  app = await startApp({ clock, env: { CIRCUIT_FAILURES: '1000' } })
})
/** The invented calls have values that no budget has counted. */
const forgetCalls = statement<[]>('test.forget_calls', 'delete from usage_events')
afterAll(async () => {
  await app.db.exec(forgetCalls)
  await app.stop()
})
beforeEach(() => clock.moveTo(noon))

// biome-ignore lint/suspicious/noExplicitAny: test assertions read arbitrary JSON.
type Json = any
type Params = Partial<UsageEvent> & { readonly atMs: number }

interface Org {
  readonly orgId: number
  readonly userId: number
  readonly keyId: number
  readonly key: string
  put(paramsList: readonly Params[]): Promise<void>
  read(query: string): Promise<{ status: number; json: Json; text: string; headers: Headers }>
}

/** Makes an organisation whose member reads its activity. */
async function newOrg(name: string): Promise<Org> {
  const org = await app.otherOrg(name)
  const { cookie } = await app.newMember('member', { orgId: org.orgId })
  return {
    ...org,
    read: query => app.call('GET', `/me/activity${query}`, undefined, { cookie }),
    async put(paramsList) {
      const events = paramsList.map(params => ({
        ...eventOf(request(0n, {}, params.atMs), 0n, { userId: null, keyId: null, workspaceId: null, ...params }),
        orgId: org.orgId,
      }))
      await app.db.tx(async tx => {
        await insertUsageEvents(tx, events)
        await keepsRollups(0)(tx, events)
      })
    },
  }
}

const micro = (inr: number): number => Math.round(inr * 1e6)

const calls = fc.array(
  fc.record({
    atMs: fc.constantFrom(-2 * dayMs, -dayMs, -13 * hourMs, -hourMs, -1, 0).map(offset => noon + offset),
    keyId: fc.constantFrom(null, 1, 2),
    userId: fc.constantFrom(null, 11, 12),
    workspaceId: fc.constantFrom(null, 21, 22),
    agentId: fc.constantFrom(null, 31, 32),
    model: fc.constantFrom('a', 'b'),
    provider: fc.constantFrom('alpha', 'beta'),
    byok: fc.boolean(),
    outcome: fc.constantFrom<Outcome>('ok', 'failed', 'client_gone', 'cut'),
    valueUinr: fc.bigInt({ min: 0n, max: 10n ** 9n }),
    costUinr: fc.bigInt({ min: 0n, max: 10n ** 9n }),
    latencyMs: fc.constantFrom(10, 100, 1000),
  }),
  { minLength: 1, maxLength: 25 },
)
/** The values of each filter, and the field of an event that it compares. */
const filterValues = {
  model: ['a', 'b'],
  provider: ['alpha', 'beta'],
  key_id: ['none', 1, 2],
  agent_id: [31, 32],
  uid: [11, 12],
  workspace_id: [21, 22],
} as const
const fieldOf = { model: 'model', provider: 'provider', key_id: 'keyId', agent_id: 'agentId', uid: 'userId', workspace_id: 'workspaceId' } as const
type Filter = keyof typeof filterValues
const filtersOf = fc.record(
  Object.fromEntries(Object.entries(filterValues).map(([name, values]) => [name, fc.constantFrom<string | number>(...values)])) as Record<
    Filter,
    fc.Arbitrary<string | number>
  >,
  { requiredKeys: [] },
)

describe('filters of activity', () => {
  test('CAPI-04 any combination of filters, by day and by hour, has the figures of its calls to the micro-rupee in every list and in the CSV', async () => {
    let round = 0
    await fc.assert(
      fc.asyncProperty(calls, fc.array(filtersOf, { minLength: 4, maxLength: 4 }), async (paramsList, filtersList) => {
        const org = await newOrg(`Sums ${++round}`)
        await org.put(paramsList)
        for (const filters of [{}, ...filtersList])
          for (const group of ['day', 'hour']) {
            const matching = paramsList.filter(params =>
              Object.entries(filters).every(([name, value]) => (params[fieldOf[name as Filter]] ?? 'none') === value),
            )
            const query = new URLSearchParams({ from: '2026-11-20', group, ...Object.fromEntries(Object.entries(filters).map(([k, v]) => [k, String(v)])) })
            const { json, status, text } = await org.read(`?${query}`)
            expect(status, text).toBe(200)
            const cost = Number(matching.reduce((sum, { costUinr }) => sum + costUinr, 0n))
            const value = Number(matching.reduce((sum, { valueUinr }) => sum + valueUinr, 0n))
            const errors = matching.filter(({ outcome }) => outcome === 'failed' || outcome === 'cut').length
            const figures = (rows: Json[]) => [
              rows.reduce((sum, row) => sum + row.requests, 0),
              rows.reduce((sum, row) => sum + micro(row.cost_inr), 0),
              rows.reduce((sum, row) => sum + micro(row.value_inr), 0),
            ]
            const expected = [matching.length, cost, value]
            expect([query.toString(), figures([json.totals]), json.totals.errors]).toEqual([query.toString(), expected, errors])
            expect(json.totals.byok_requests).toBe(matching.filter(({ byok }) => byok).length)
            const lists = ['days', 'top_models', 'top_keys', ...(group === 'hour' ? ['hours'] : [])]
            // Sums by key alone do not know agents and members.
            const isOfKey = 'key_id' in filters && group === 'day' && !('agent_id' in filters || 'uid' in filters || 'workspace_id' in filters)
            if (!isOfKey) lists.push('by_agent', 'by_member')
            else expect([json.by_agent, json.by_member]).toEqual([null, null])
            for (const name of lists) expect([query.toString(), name, figures(json[name])]).toEqual([query.toString(), name, expected])
            expect(figures(json.model_providers.flatMap(({ providers }: Json) => providers))).toEqual(expected)
            const served = matching.filter(({ outcome }) => outcome === 'ok').length
            expect([json.latency.calls, json.latency.by.reduce((sum: number, { calls }: Json) => sum + calls, 0)]).toEqual([served, served])
            const csv = (await org.read(`?${query}&format=csv`)).text
              .trim()
              .split('\r\n')
              .slice(1)
              .map(line => line.split(','))
            const column = (at: number) => csv.reduce((sum, cells) => sum + Number(cells[at]), 0)
            expect([column(3), column(9), column(12)]).toEqual([matching.length, cost, errors])
          }
      }),
      { numRuns: propertyRuns(8) },
    )
  })

  test('hours are those of Indian days, and each says when it begins in UTC', async () => {
    const org = await newOrg('Hours')
    const midnight = Date.UTC(2026, 10, 21, 18, 30)
    await org.put([
      { atMs: midnight - 1, model: 'a', costUinr: 5n },
      { atMs: midnight, model: 'a', costUinr: 7n },
      { atMs: midnight + hourMs - 1, model: 'a' },
      { atMs: midnight + hourMs, model: 'b' },
    ])
    const { json } = await org.read('?group=hour&from=2026-11-21')
    expect(json.hours.map(({ day, hour, at, model, requests }: Json) => [day, hour, at, model, requests])).toEqual([
      ['2026-11-21', 23, '2026-11-21T17:30:00.000Z', 'a', 1],
      ['2026-11-22', 0, '2026-11-21T18:30:00.000Z', 'a', 2],
      ['2026-11-22', 1, '2026-11-21T19:30:00.000Z', 'b', 1],
    ])
    const today = (await org.read('?group=hour')).json
    expect([today.from, today.to, today.totals.requests]).toEqual(['2026-11-22', '2026-11-22', 3])
    const csv = await org.read('?group=hour&format=csv')
    expect(csv.headers.get('content-type')).toContain('text/csv')
    expect(csv.headers.get('content-disposition')).toBe('attachment; filename="activity-2026-11-22-to-2026-11-22.csv"')
    expect(csv.text.split('\r\n').map(line => line.split(',').at(-1))).toEqual(['hour', '0', '1', ''])
    expect((await org.read('')).json.hours).toBeUndefined()
  })

  test('a report by hour takes at most 3 days of the last 32', async () => {
    const org = await newOrg('Hour spans')
    for (const query of [
      '?group=hour&from=2026-11-19',
      '?group=hour&from=2026-10-20&to=2026-10-21',
      '?group=minute',
      '?uid=0',
      '?workspace_id=x',
      '?provider=',
    ]) {
      const { status, json } = await org.read(query)
      expect([query, status, json.error.code]).toEqual([query, 400, 'bad_request'])
    }
    expect((await org.read('?group=hour&from=2026-11-20')).status).toBe(200)
    expect((await org.read('?group=hour&from=2026-10-22&to=2026-10-22')).status).toBe(200)
  })

  test('sums by hour are deleted after 32 days, and the sums of their days stay', async () => {
    const org = await newOrg('Old hours')
    await org.put([{ atMs: noon - 31 * dayMs, agentId: 31 }, { atMs: noon }])
    await deleteOldHours({ db: app.db, clock }, new AbortController().signal)
    expect((await org.read('?group=hour&from=2026-10-22&to=2026-10-22')).json.totals.requests).toBe(1)
    clock.advance(dayMs)
    await deleteOldHours({ db: app.db, clock }, new AbortController().signal)
    clock.moveTo(noon)
    const old = await org.read('?group=hour&from=2026-10-22&to=2026-10-22')
    expect([old.json.totals.requests, old.json.latency.calls]).toEqual([0, 0])
    expect((await org.read('?from=2026-10-22&agent_id=31')).json.totals.requests).toBe(1)
  })

  test('CAPI-04 agents and members are listed by value, the first 20 by name, all others in one row', async () => {
    const org = await newOrg('Callers')
    const reader = (await app.call('POST', '/v1/me/agents', { name: 'reader' }, { token: org.key })).json
    const person = await app.newMember('member', { orgId: org.orgId })
    const of = (n: number): Params => ({ atMs: noon - n, agentId: 1_000_000 + n, userId: 1_000_000 + n, valueUinr: BigInt(1000 - n), costUinr: 0n })
    await org.put([
      ...Array.from({ length: 24 }, (_, n) => of(n)),
      { atMs: noon, agentId: reader.id, userId: person.userId, valueUinr: 5000n },
      { atMs: noon, agentLabel: 'ci', valueUinr: 1n },
    ])
    const { json } = await org.read('')
    const agents = json.by_agent.map(({ agent_id, name, others, requests }: Json) => [agent_id, name, others, requests])
    expect(agents).toHaveLength(22)
    expect(agents[0]).toEqual([reader.id, 'reader', 0, 1])
    expect(agents[1]).toEqual([1_000_000, null, 0, 1])
    expect(agents.slice(-2)).toEqual([
      [null, null, 0, 1],
      [null, null, 5, 5],
    ])
    const members = json.by_member.map(({ uid, email, others, requests }: Json) => [uid, email, others, requests])
    expect(members[0]).toEqual([person.userId, person.email, 0, 1])
    expect(members.slice(-2)).toEqual([
      [null, null, 0, 1],
      [null, null, 5, 5],
    ])
    // The same lists with a filter come from other sums.
    const filtered = (await org.read('?provider=p')).json
    expect([filtered.by_agent, filtered.by_member]).toEqual([json.by_agent, json.by_member])
  })

  test('the address of a person who has left is not shown', async () => {
    const org = await newOrg('Leavers')
    const person = await app.newMember('member', { orgId: org.orgId })
    await org.put([{ atMs: noon, userId: person.userId }])
    expect((await org.read('')).json.by_member[0]).toMatchObject({ uid: person.userId, email: person.email })
    expect((await app.call('DELETE', `/me/members/${person.userId}`, {}, { cookie: person.cookie })).status).toBe(200)
    expect((await org.read('')).json.by_member[0]).toMatchObject({ uid: person.userId, email: null })
  })

  test('CAPI-04 the median and the 95th percentile of latencies are given by day and by hour, of served calls only', async () => {
    const org = await newOrg('Latencies')
    const of = (latencyMs: number, hours: number, over: object = {}) => ({ atMs: noon - hours * hourMs, latencyMs, agentId: 31, model: 'a', ...over })
    await org.put([
      ...Array.from({ length: 94 }, () => of(100, 0)),
      ...Array.from({ length: 6 }, () => of(5000, 0)),
      ...Array.from({ length: 10 }, () => of(400, 1)),
      of(60_000, 1, { outcome: 'failed', status: 502 }),
      of(1000, 24, { provider: 'beta' }),
    ])
    const near = (ms: number) => expect.closeTo(ms, -Math.log10(ms * 0.1))
    for (const query of ['?from=2026-11-21', '?from=2026-11-21&agent_id=31', '?from=2026-11-21&model=a']) {
      const { latency } = (await org.read(query)).json
      expect([query, latency]).toEqual([
        query,
        {
          calls: 111,
          p50_ms: near(100),
          p95_ms: near(5000),
          by: [
            { day: '2026-11-21', hour: null, calls: 1, p50_ms: near(1000), p95_ms: near(1000) },
            { day: '2026-11-22', hour: null, calls: 110, p50_ms: near(100), p95_ms: near(5000) },
          ],
        },
      ])
      const { latency: hourly } = (await org.read(`${query}&group=hour`)).json
      expect(hourly.by.map(({ day, hour, calls, p50_ms }: Json) => [day, hour, calls, p50_ms])).toEqual([
        ['2026-11-21', 12, 1, near(1000)],
        ['2026-11-22', 11, 10, near(400)],
        ['2026-11-22', 12, 100, near(100)],
      ])
    }
    expect((await org.read('?from=2026-11-21&provider=beta')).json.latency).toMatchObject({ calls: 1, p50_ms: near(1000) })
    expect((await org.read('?from=2026-11-01&to=2026-11-02')).json.latency).toEqual({ calls: 0, p50_ms: null, p95_ms: null, by: [] })
  })

  const manyCalls = statement<[orgId: number, day: string, requests: bigint]>(
    'test.many_calls',
    `insert into usage_days select $1::int, $2::date, 'a', 'alpha', 'global', false, $3::bigint, 0, 1, 1, 0, 0, 1, 1`,
  )

  test('a report reads no single calls of a span with too many of them: it says so, or leaves a list out', async () => {
    const org = await newOrg('Busy')
    await org.put([{ atMs: noon, agentId: 31, keyId: 1, userId: 11, valueUinr: 3n }])
    const wide = (await org.read('?agent_id=31&key_id=1&from=2026-10-01')).json
    expect(wide.error).toMatchObject({ code: 'bad_request', message: expect.stringContaining('31 days') })
    expect((await org.read('?agent_id=31&key_id=1')).json.totals).toMatchObject({ requests: 1, value_inr: 0.000003 })
    await app.db.exec(manyCalls, org.orgId, '2026-11-21', BigInt(eventsMax))
    const busy = await org.read('?agent_id=31&key_id=1')
    expect([busy.status, busy.json.error.message]).toEqual([400, expect.stringContaining(String(eventsMax))])
    expect((await org.read('?group=hour&key_id=1&from=2026-11-21')).status).toBe(400)
    // Sums answer the rest, and the lists that they do not know are null.
    const ofAgent = (await org.read('?agent_id=31')).json
    expect([ofAgent.totals.requests, ofAgent.top_keys, ofAgent.latency, ofAgent.by_member.length]).toEqual([1, null, null, 1])
    expect((await org.read('?agent_id=31&group=hour')).json.totals.requests).toBe(1)
    // Today alone has few calls.
    expect((await org.read('?agent_id=31&from=2026-11-22')).json.latency.calls).toBe(1)
    const unfiltered = (await org.read('')).json
    expect([unfiltered.totals.requests, unfiltered.latency.calls]).toEqual([eventsMax + 1, 1])
  })

  test('filters with ids of another organisation match nothing', async () => {
    const [org, other] = [await newOrg('Mine'), await newOrg('Theirs')]
    await other.put([{ atMs: noon, agentId: 77, userId: other.userId, workspaceId: 78, keyId: other.keyId, provider: 'alpha' }])
    for (const filter of [
      'agent_id=77',
      `uid=${other.userId}`,
      'workspace_id=78',
      `key_id=${other.keyId}`,
      `key_id=${other.keyId}&agent_id=77`,
      'provider=alpha',
    ])
      for (const group of ['', '&group=hour']) {
        const { json } = await org.read(`?${filter}${group}`)
        expect([filter, json.totals.requests, json.days, json.by_agent ?? [], json.by_member ?? []]).toEqual([filter, 0, [], [], []])
      }
    expect((await other.read(`?uid=${other.userId}`)).json.totals.requests).toBe(1)
  })
})

test('CAPI-01 a signed-in member reads the same usage report and CSV as a key', async () => {
  const org = await newOrg('Twins')
  const { cookie } = await app.newMember('member', { orgId: org.orgId })
  await org.put([{ atMs: noon, id: systemIds.uuidv7(noon), agentId: null, costUinr: 9n, valueUinr: 9n }])
  for (const [ofKey, ofSession] of [
    ['/v1/usage', '/me/usage/report'],
    ['/v1/usage?group_by=day', '/me/usage/report?group_by=day'],
    ['/v1/usage?format=csv', '/me/usage/report?format=csv'],
    ['/v1/usage.csv?from=2026-11-01', '/me/usage.csv?from=2026-11-01'],
  ] as const) {
    const [key, session] = [await app.call('GET', ofKey, undefined, { token: org.key }), await app.call('GET', ofSession, undefined, { cookie })]
    expect([ofSession, session.status, session.text]).toEqual([ofSession, 200, key.text])
    expect(session.headers.get('content-type')).toBe(key.headers.get('content-type'))
  }
  expect((await app.call('GET', '/me/usage.csv?from=x', undefined, { cookie })).status).toBe(400)
  expect((await app.call('GET', '/me/usage/report')).status).toBe(401)
})
