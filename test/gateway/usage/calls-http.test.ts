/** The list of single calls with its filters, and one call in full with the routes that it tried. */
import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { scanMax } from '../../../src/gateway/usage/activity/activity-events.ts'
import { insertUsageEvents } from '../../../src/gateway/usage/events/apply.ts'
import type { Outcome, UsageEvent, UsageKind } from '../../../src/gateway/usage/events/record.ts'
import { keepsRollups } from '../../../src/gateway/usage/rollups/rollups.ts'
import { startApp, type TestApp } from '../../harness/app.ts'
import { movableClock } from '../../harness/clock.ts'
import { propertyRuns } from '../../harness/property-runs.ts'
import { eventOf, request } from '../limits/engine.ts'

/** Noon of 22 November 2026 in India. */
const noon = Date.UTC(2026, 10, 22, 6, 30)
const dayMs = 24 * 3600_000
const hello = [{ role: 'user', content: 'zqsaidzq' }]

const clock = movableClock(noon)
let app: TestApp
beforeAll(async () => {
  app = await startApp({ clock, env: { CIRCUIT_FAILURES: '1000' } })
})
afterAll(() => app.stop())
beforeEach(() => {
  clock.moveTo(noon)
  for (const upstream of [app.alpha, app.beta, app.indus]) upstream.reset()
})

// biome-ignore lint/suspicious/noExplicitAny: test assertions read arbitrary JSON.
type Json = any
type Params = Partial<UsageEvent> & { readonly atMs: number }

interface Org {
  readonly orgId: number
  readonly userId: number
  readonly key: string
  readonly keyId: number
  put(paramsList: readonly Params[]): Promise<UsageEvent[]>
  read(path: string): Promise<{ status: number; json: Json; text: string }>
}
async function newOrg(name: string): Promise<Org> {
  const org = await app.otherOrg(name)
  const { cookie } = await app.newMember('member', { orgId: org.orgId })
  return {
    ...org,
    read: path => app.call('GET', `/me/activity/events${path}`, undefined, { cookie }),
    async put(paramsList) {
      const events = paramsList.map(params => ({
        ...eventOf(request(0n, {}, params.atMs), 0n, { userId: null, keyId: null, workspaceId: null, ...params }),
        orgId: org.orgId,
      }))
      await app.db.tx(async tx => {
        await insertUsageEvents(tx, events)
        await keepsRollups(0)(tx, events)
      })
      return events
    },
  }
}

/** Sends a chat and returns the id of the request. */
async function chat(token: string, body: object = {}, headers: Record<string, string> = {}): Promise<{ status: number; requestId: string }> {
  const reply = await app.call('POST', '/v1/chat/completions', { model: 'test-model', messages: hello, ...body }, { token, headers })
  return { status: reply.status, requestId: reply.headers.get('x-request-id') ?? '' }
}

/** Reads all pages. */
async function pages(org: Org, query: string): Promise<{ events: Json[]; count: number }> {
  const events: Json[] = []
  for (let cursor = '', count = 1; ; count++) {
    const { json, status, text } = await org.read(`?${query}${cursor}`)
    expect(status, text).toBe(200)
    events.push(...json.events)
    if (json.next_before === null) return { events, count }
    cursor = `&before=${json.next_before}`
  }
}

describe('filters of single calls', () => {
  const calls = fc.array(
    fc.record({
      atMs: fc.constantFrom(0, 0, -1, -dayMs, -dayMs - 1, -3 * dayMs).map(offset => noon + offset),
      keyId: fc.constantFrom(null, 1, 2),
      userId: fc.constantFrom(null, 11),
      workspaceId: fc.constantFrom(null, 21),
      agentId: fc.constantFrom(null, 31),
      model: fc.constantFrom('a', 'b'),
      provider: fc.constantFrom('alpha', 'beta'),
      kind: fc.constantFrom<UsageKind>('chat', 'embeddings'),
      outcome: fc.constantFrom<Outcome>('ok', 'failed', 'client_gone', 'cut'),
      requestId: fc.constantFrom('req_a', 'req_b'),
    }),
    { maxLength: 20 },
  )
  const filtersOf = fc.record(
    {
      model: fc.constantFrom('a', 'b'),
      provider: fc.constantFrom('alpha', 'beta'),
      key_id: fc.constantFrom('none', '1'),
      agent_id: fc.constant('31'),
      uid: fc.constant('11'),
      workspace_id: fc.constant('21'),
      kind: fc.constantFrom('chat', 'embeddings'),
      outcome: fc.constantFrom('ok', 'failed', 'cut'),
      request_id: fc.constantFrom('req_a', 'req_b'),
      from: fc.constantFrom('2026-11-19', '2026-11-21', '2026-11-22'),
      to: fc.constantFrom('2026-11-19', '2026-11-21', '2026-11-22'),
    },
    { requiredKeys: [] },
  )
  const istDayOf = (atMs: number): string => new Date(atMs + 5.5 * 3600_000).toISOString().slice(0, 10)
  const field = { key_id: 'keyId', agent_id: 'agentId', uid: 'userId', workspace_id: 'workspaceId', request_id: 'requestId' } as const

  test('CAPI-04 any combination of filters has exactly its calls, newest first, in pages of any size', async () => {
    let round = 0
    await fc.assert(
      fc.asyncProperty(calls, fc.array(filtersOf, { minLength: 5, maxLength: 5 }), fc.integer({ min: 1, max: 7 }), async (paramsList, filtersList, limit) => {
        const org = await newOrg(`Calls ${++round}`)
        const events = await org.put(paramsList)
        for (const filters of filtersList) {
          const { from = '', to = '9999', ...same } = filters
          if (from > to) {
            expect((await org.read(`?from=${from}&to=${to}`)).status).toBe(400)
            continue
          }
          const matching = events.filter(
            event =>
              istDayOf(event.atMs) >= from &&
              istDayOf(event.atMs) <= to &&
              Object.entries(same).every(([name, value]) => String(event[(field[name as keyof typeof field] ?? name) as keyof UsageEvent] ?? 'none') === value),
          )
          const query = new URLSearchParams(filters).toString()
          const size = 'request_id' in filters ? 200 : limit
          const { events: found } = await pages(org, `limit=${size}&${query}`)
          const newestFirst = matching.sort((a, b) => (`${istDayOf(a.atMs)} ${a.id}` < `${istDayOf(b.atMs)} ${b.id}` ? 1 : -1))
          expect([query, found.map(({ id }) => id)]).toEqual([query, newestFirst.map(({ id }) => id)])
        }
      }),
      { numRuns: propertyRuns(20) },
    )
  })

  test('a page reads a bounded number of calls and days, may be empty, and says where to continue', async () => {
    const org = await newOrg('Many days')
    // Sums do not know kinds, so every day must be read.
    await org.put(Array.from({ length: 90 }, (_, n) => ({ atMs: noon - n * dayMs, kind: n === 85 ? ('speech' as const) : ('chat' as const), userId: 11 })))
    const first = (await org.read('?kind=speech&uid=11')).json
    expect([first.events, typeof first.next_before]).toEqual([[], 'string'])
    const { events, count } = await pages(org, 'kind=speech&uid=11')
    expect([events.map(({ kind }) => kind), count]).toEqual([['speech'], 3])
    const busy = await newOrg('Many calls')
    const many: Params[] = Array.from({ length: scanMax + 5 }, (_, n) => ({ atMs: noon - n, workspaceId: n === scanMax + 4 ? 21 : 22 }))
    for (let at = 0; at < many.length; at += 5000) await busy.put(many.slice(at, at + 5000))
    const page = (await busy.read('?workspace_id=21')).json
    expect([page.events, typeof page.next_before]).toEqual([[], 'string'])
    expect((await pages(busy, 'workspace_id=21')).events).toHaveLength(1)
  })

  test('an unknown value of a filter gets 400 bad_request, and ids of another organisation match nothing', async () => {
    const [org, other] = [await newOrg('Unknown'), await newOrg('Others')]
    for (const query of [
      'from=2026-02-30',
      'to=x',
      'from=2026-11-22&to=2026-11-21',
      'outcome=bad',
      'kind=video',
      'uid=0',
      'workspace_id=x',
      'provider=',
      'request_id=',
    ]) {
      const { status, json } = await org.read(`?${query}`)
      expect([query, status, json.error.code]).toEqual([query, 400, 'bad_request'])
    }
    await other.put([{ atMs: noon, userId: 11, workspaceId: 21, requestId: 'req_other' }])
    for (const query of ['uid=11', 'workspace_id=21', 'request_id=req_other'])
      expect((await org.read(`?${query}`)).json).toEqual({ events: [], next_before: null })
  })
})

describe('one call in full', () => {
  test('CAPI-04 a call that failed over shows every route that was tried, in order, with its reason and time, and nothing that was said', async () => {
    const org = await newOrg('Failover')
    const made = (await app.call('POST', '/v1/me/agents', { name: 'reader' }, { token: org.key })).json
    app.alpha.script({ status: 503, body: { error: { message: 'zqprovidersaidzq' } } })
    app.beta.script({ status: 429, body: { error: { message: 'zqprovidersaidzq' } } })
    const body = { messages: hello }
    const sent = await chat(org.key, body, { 'x-br-agent-id': 'reader' })
    expect(sent.status).toBe(200)
    const { json, text } = await org.read(`/${sent.requestId}`)
    expect([json.request_id, json.calls.length]).toEqual([sent.requestId, 1])
    const [call] = json.calls
    expect(call).toMatchObject({
      request_id: sent.requestId,
      outcome: 'ok',
      status: 200,
      agent_id: made.id,
      agent_name: 'reader',
      uid: org.userId,
      kind: 'chat',
      images: 0,
    })
    const served = call.routes.at(-1)
    expect([served.outcome, served.reason, served.provider, served.model]).toEqual(['answered', null, call.provider, call.model])
    const failed = call.routes.slice(0, -1)
    expect(failed.map(({ outcome, reason }: Json) => [outcome, reason])).toEqual(
      failed.map(({ provider }: Json) => ['failed', provider === 'alpha' ? '503' : '429']),
    )
    expect(new Set(call.routes.map(({ provider }: Json) => provider))).toEqual(new Set(['alpha', 'beta', 'indus']))
    for (const { ms } of call.routes) expect(ms).toBeGreaterThanOrEqual(0)
    expect(text).not.toMatch(/zqsaidzq|zqprovidersaidzq/)
    expect(await app.dump()).not.toContain('zqprovidersaidzq')
    // The list finds the same call.
    expect((await org.read(`?request_id=${sent.requestId}`)).json.events).toMatchObject([{ id: call.id, uid: org.userId }])
  })

  test('a call whose routes all failed has one failed route for each, a refused call the status that the client saw, and a served call one answered route', async () => {
    const org = await newOrg('All failed')
    for (const server of [app.alpha, app.beta, app.indus]) server.script(() => ({ status: 500, body: { error: { message: 'broken' } } }))
    const broken = await chat(org.key)
    expect(broken.status).toBe(502)
    const [failed] = (await org.read(`/${broken.requestId}`)).json.calls
    expect(failed.routes.map(({ outcome, reason }: Json) => [outcome, reason])).toEqual(Array.from({ length: 3 }, () => ['failed', '500']))
    for (const server of [app.alpha, app.beta, app.indus]) server.reset()
    app.alpha.script({ status: 422, body: { error: { message: 'no' } } })
    const refused = await chat(org.key, { model: 'alpha-only' })
    const [refusal] = (await org.read(`/${refused.requestId}`)).json.calls
    expect(refusal.routes).toMatchObject([{ provider: 'alpha', outcome: 'failed', reason: '422', byok: false }])
    const served = await chat(org.key, { model: 'same-id' })
    expect((await org.read(`/${served.requestId}`)).json.calls[0].routes).toMatchObject([{ outcome: 'answered', reason: null }])
  })

  test('a request of another organisation, an unknown one and one of any length get 404', async () => {
    const [org, other] = [await newOrg('Reader'), await newOrg('Owner')]
    const { requestId } = await chat(other.key)
    for (const id of [requestId, 'req_000000000000000000000000', 'x'.repeat(1000), '%00']) {
      const reply = await org.read(`/${id}`)
      expect([id, reply.status, reply.json.error.code]).toEqual([id, 404, 'not_found'])
    }
    expect((await other.read(`/${requestId}`)).status).toBe(200)
    expect((await app.call('GET', `/me/activity/events/${requestId}`)).status).toBe(401)
  })

  test('an event whose list of routes cannot be read shows the route that ended it', async () => {
    const org = await newOrg('Unreadable')
    for (const [n, tried] of ['{', '"x"', '[]', '[2,["a"],5]'].entries()) {
      await org.put([{ atMs: noon, requestId: `req_bad${n}`, tried }])
      const reply = await org.read(`/req_bad${n}`)
      expect([tried, reply.status, reply.json.calls[0].routes.map(({ outcome }: Json) => outcome)]).toEqual([tried, 200, ['answered']])
    }
  })
})
