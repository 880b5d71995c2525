import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { insertUsageEvents } from '../../../src/gateway/usage/events/apply.ts'
import type { UsageEvent } from '../../../src/gateway/usage/events/record.ts'
import { keepsRollups } from '../../../src/gateway/usage/rollups/rollups.ts'
import { systemIds } from '../../../src/platform/values/ids.ts'
import { istDay } from '../../../src/platform/values/ist-time.ts'
import { startApp, type TestApp } from '../../harness/app.ts'
import { movableClock } from '../../harness/clock.ts'
import { propertyRuns } from '../../harness/property-runs.ts'
import { eventOf, request } from '../limits/engine.ts'

const hello = [{ role: 'user', content: 'zqsaidzq' }]
/** Half a minute before the end of 21 November 2026 in India. */
const lateEvening = Date.UTC(2026, 10, 21, 18, 29, 30)
const [yesterday, today] = ['2026-11-21', '2026-11-22']
const dayMs = 24 * 3600_000

const clock = movableClock(lateEvening)
let app: TestApp
beforeAll(async () => {
  app = await startApp({ clock, env: { CIRCUIT_FAILURES: '1000' } })
})
afterAll(() => app.stop())
beforeEach(() => {
  clock.moveTo(lateEvening)
  for (const upstream of [app.alpha, app.beta, app.indus]) upstream.reset()
})

// biome-ignore lint/suspicious/noExplicitAny: test assertions read arbitrary JSON.
type Json = any

interface Org {
  readonly orgId: number
  readonly userId: number
  readonly key: string
  readonly keyId: number
  readonly cookie: string
  read(path: string): Promise<{ status: number; json: Json; text: string }>
}
async function newOrg(name: string): Promise<Org> {
  const org = await app.otherOrg(name)
  const { cookie } = await app.newMember('member', { orgId: org.orgId })
  return { ...org, cookie, read: path => app.call('GET', path, undefined, { cookie }) }
}
const send = (token: string, body: object = {}, headers: Record<string, string> = {}) =>
  app.call('POST', '/v1/chat/completions', { model: 'test-model', messages: hello, ...body }, { token, headers })
async function chat(token: string, body: object = {}, headers: Record<string, string> = {}): Promise<void> {
  const reply = await send(token, body, headers)
  expect(reply.status, reply.text).toBe(200)
}
const secondKey = (org: Org, name: string) => app.gateway.app.keys.create({ orgId: org.orgId, userId: org.userId, workspaceId: null, name, scope: 'full' })

/** Inserts events that another process has settled, without money. */
async function put(org: Org, paramsList: readonly (Partial<UsageEvent> & { atMs: number })[]): Promise<string[]> {
  const events = paramsList.map(params => ({ ...eventOf(request(0n, {}, params.atMs), 0n, { userId: null, keyId: null, ...params }), orgId: org.orgId }))
  await app.db.tx(async tx => {
    const inserted = new Set(await insertUsageEvents(tx, events))
    await keepsRollups(0)(
      tx,
      events.filter(({ id }) => inserted.has(id)),
    )
  })
  return events.map(({ id }) => id)
}

describe('usage at a glance', () => {
  test('USAGE-09 the overview lists every key with its usage today in India and in 30 days, and the total of the organisation', async () => {
    const org = await newOrg('Glance')
    const batch = await secondKey(org, 'nightly batch')
    const unused = await secondKey(org, 'never used')
    // The 30 days begin on 24 October.
    await put(org, [
      { atMs: Date.parse('2026-10-23T18:29:59.999Z'), keyId: org.keyId },
      { atMs: Date.parse('2026-10-23T18:30:00Z'), keyId: org.keyId },
    ])
    await chat(org.key)
    clock.advance(60_000)
    await chat(org.key)
    await chat(org.key, { stream: true })
    await chat(batch.key, { provider: 'indus' })
    await put(org, [{ atMs: clock.nowMs() }])
    await app.gateway.app.keys.revoke(org.orgId, batch.id)
    const { json } = await org.read('/me/usage')
    expect([json.from, json.to]).toEqual(['2026-10-24', today])
    const short = json.keys.map((row: Json) => [
      row.key_id,
      row.name,
      row.revoked,
      row.today.requests,
      row.today.tokens,
      row.last_30_days.requests,
      row.last_30_days.tokens,
    ])
    expect(short).toEqual([
      [org.keyId, 'owner key', false, 2, 34, 4, 58],
      [batch.id, 'nightly batch', true, 1, 17, 1, 17],
      [null, null, null, 1, 7, 1, 7],
      [unused.id, 'never used', false, 0, 0, 0, 0],
    ])
    expect(json.totals.today).toMatchObject({ requests: 4, tokens: 58, cost_inr: 0.0016, value_inr: 0.0016 })
    expect(json.totals.last_30_days).toMatchObject({ requests: 6, tokens: 82, cost_inr: 0.00192 })
    expect(json.keys[0].prefix).toBe(org.key.slice(0, json.keys[0].prefix.length))
  })

  test('USAGE-10 the overview lists the last 30 IST days by day and model, for the own organisation only', async () => {
    const [org, other] = [await newOrg('Daily'), await newOrg('Other Daily')]
    await put(org, [
      { atMs: Date.parse('2026-10-22T18:30:00Z'), model: 'a' },
      { atMs: Date.parse('2026-10-22T18:29:59.999Z'), model: 'too-old' },
    ])
    await chat(org.key)
    await chat(org.key, { model: 'same-id', upstream_key: 'sk-own-credential-9', provider: 'alpha' })
    const first = (await org.read('/me/usage/daily')).json
    expect([first.from, first.to]).toEqual(['2026-10-23', yesterday])
    const short = (json: Json) => json.days.map((row: Json) => [row.day, row.model, row.requests, row.tokens, row.cost_inr, row.value_inr])
    expect(short(first)).toEqual([
      ['2026-10-23', 'a', 1, 7, 0, 0],
      [yesterday, 'same-id', 1, 17, 0, 0.00032],
      [yesterday, 'test-model', 1, 17, 0.00032, 0.00032],
    ])
    clock.advance(60_000)
    await chat(org.key)
    expect(short((await org.read('/me/usage/daily')).json)).toEqual([...short(first).slice(1), [today, 'test-model', 1, 17, 0.00032, 0.00032]])
    expect((await other.read('/me/usage/daily')).json.days).toEqual([])
  })
})

describe('activity', () => {
  test('ACT-01 activity lists days by model, top models, top keys, providers and totals, for a span and with filters', async () => {
    const org = await newOrg('Active')
    const other = await secondKey(org, 'second')
    await chat(org.key)
    clock.advance(60_000)
    for (const provider of ['alpha', 'beta', 'indus']) await chat(org.key, { provider })
    await chat(other.key, { model: 'same-id' })
    await chat(other.key, { upstream_key: 'sk-own-credential-1', provider: 'alpha' })
    app.alpha.script({ status: 400, body: { error: { message: 'no' } } })
    expect((await send(other.key, { model: 'alpha-only' })).status).toBe(400)
    const { json } = await org.read('/me/activity')
    expect([json.from, json.to]).toEqual(['2026-10-24', today])
    const brief = ({ requests, tokens, cost_inr, value_inr, errors, byok_requests }: Json) => [requests, tokens, cost_inr, value_inr, errors, byok_requests]
    expect(brief(json.totals)).toEqual([7, 102, 0.00256, 0.00288, 1, 1])
    expect(json.days.map((row: Json) => [row.day, row.model, ...brief(row)])).toEqual([
      [yesterday, 'test-model', 1, 17, 0.00032, 0.00032, 0, 0],
      [today, 'test-model', 4, 68, 0.00192, 0.00224, 0, 1],
      [today, 'same-id', 1, 17, 0.00032, 0.00032, 0, 0],
      [today, 'alpha-only', 1, 0, 0, 0, 1, 0],
    ])
    expect(json.top_models.map((row: Json) => [row.model, row.requests])).toEqual([
      ['test-model', 5],
      ['same-id', 1],
      ['alpha-only', 1],
    ])
    expect(json.top_keys.map((row: Json) => [row.key_id, row.name, row.revoked, row.requests, row.errors])).toEqual([
      [org.keyId, 'owner key', false, 4, 0],
      [other.id, 'second', false, 3, 1],
    ])
    expect(json.model_providers[0]).toEqual({
      model: 'test-model',
      providers: [
        { provider: 'alpha', requests: 3, tokens: 51, cost_inr: 0.00064, value_inr: 0.00096 },
        { provider: 'indus', requests: 1, tokens: 17, cost_inr: 0.00096, value_inr: 0.00096 },
        { provider: 'beta', requests: 1, tokens: 17, cost_inr: 0.00064, value_inr: 0.00064 },
      ],
    })
    expect([json.models, json.keys.map((row: Json) => row.key_id)]).toEqual([
      ['alpha-only', 'same-id', 'test-model'],
      [org.keyId, other.id],
    ])

    const totals = async (query: string) => brief((await org.read(`/me/activity${query}`)).json.totals).slice(0, 2)
    expect(await totals(`?from=${yesterday}&to=${yesterday}`)).toEqual([1, 17])
    expect(await totals('?model=test-model')).toEqual([5, 85])
    expect(await totals(`?key_id=${other.id}`)).toEqual([3, 34])
    expect(await totals(`?key_id=${other.id}&model=same-id&from=${today}`)).toEqual([1, 17])
    expect(await totals('?key_id=none')).toEqual([0, 0])
    const ofModel = (await org.read('/me/activity?model=test-model')).json
    expect(ofModel.top_keys.map((row: Json) => [row.key_id, row.requests])).toEqual([
      [org.keyId, 4],
      [other.id, 1],
    ])
    const ofKey = (await org.read(`/me/activity?key_id=${other.id}`)).json
    expect(ofKey.top_keys.map((row: Json) => [row.key_id, row.name, row.requests])).toEqual([[other.id, 'second', 3]])
    // The lists of possible filters do not change with the filter.
    for (const filtered of [ofModel, ofKey]) expect([filtered.models, filtered.keys]).toEqual([json.models, json.keys])
    for (const query of ['?from=2025-11-20', '?from=2026-02-30', '?from=2026-11-22&to=2026-11-21', '?key_id=x', '?key_id=0', '?model=', '?model=a%00b']) {
      const reply = await org.read(`/me/activity${query}`)
      expect([query, reply.status, reply.json.error?.code]).toEqual([query, 400, 'bad_request'])
    }
    expect((await org.read('/me/activity?from=2025-11-22&to=2026-11-22')).status).toBe(200)
  })

  test('the key and the usage of another organisation are not shown', async () => {
    const [org, other] = [await newOrg('Here'), await newOrg('There')]
    await chat(org.key)
    const { json } = await other.read(`/me/activity?key_id=${org.keyId}`)
    expect(json).toMatchObject({ totals: { requests: 0, value_inr: 0 }, days: [], top_models: [], top_keys: [], model_providers: [], models: [], keys: [] })
    expect((await other.read(`/me/activity/events?key_id=${org.keyId}`)).json).toEqual({ events: [], next_before: null })
  })
})

describe('single calls', () => {
  test('ACT-02 SHAPE-28 single calls are listed newest first, in pages, by key and agent, without content', async () => {
    const org = await newOrg('Calls')
    const made = (await app.call('POST', '/v1/me/agents', { name: 'reader' }, { token: org.key })).json
    app.alpha.script({ chunks: ['zqsaidzq'], usage: { prompt_tokens: 30, completion_tokens: 4, total_tokens: 34 } })
    await chat(org.key)
    await chat(org.key, { model: 'same-id', stream: true }, { 'x-br-agent-id': 'reader' })
    await chat(org.key, { provider: 'indus', upstream_key: 'sk-own-credential-1' }, { 'x-br-agent-id': 'zqlabelzq' })
    const { json, text } = await org.read('/me/activity/events')
    expect(json.next_before).toBeNull()
    expect(
      json.events.map((event: Json) => [event.model, event.provider, event.residency, event.agent_id, event.agent_name, event.agent_label, event.byok]),
    ).toEqual([
      ['test-model', 'indus', 'india', null, null, 'zqlabelzq', true],
      ['same-id', 'alpha', 'global', made.id, 'reader', null, false],
      ['test-model', 'alpha', 'global', null, null, null, false],
    ])
    const [, , first] = json.events
    expect(first).toMatchObject({
      status: 200,
      tokens: 34,
      prompt_tokens: 30,
      completion_tokens: 4,
      cost_inr: 0.00046,
      value_inr: 0.00046,
      key_name: 'owner key',
      key_id: org.keyId,
      kind: 'chat',
      outcome: 'ok',
    })
    expect(first.at).toMatch(/^2026-11-21T18:29:[34]\d\.\d{3}Z$/)
    expect(first.latency_ms).toBeGreaterThanOrEqual(0)
    expect(text).not.toMatch(/zqsaidzq|own-credential/)
    const pages: Json[] = []
    for (let before = ''; ; ) {
      const page = (await org.read(`/me/activity/events?limit=1${before}`)).json
      pages.push(...page.events)
      if (page.next_before === null) break
      expect(page.events).toHaveLength(1)
      before = `&before=${page.next_before}`
    }
    expect(pages).toEqual(json.events)
    const ids = async (query: string) => (await org.read(`/me/activity/events?${query}`)).json.events.map((event: Json) => event.model)
    expect(await ids('model=same-id')).toEqual(['same-id'])
    expect(await ids(`agent_id=${made.id}&key_id=${org.keyId}`)).toEqual(['same-id'])
    expect(await ids(`key_id=${org.keyId}&limit=2`)).toEqual(['test-model', 'same-id'])
    expect(await ids('key_id=none')).toEqual([])
    expect(await ids('status=failed')).toEqual([])
  })

  test('ACT-04 an invalid cursor or page size gets 400 bad_request', async () => {
    const org = await newOrg('Cursors')
    await chat(org.key)
    const { id } = (await org.read('/me/activity/events')).json.events[0]
    for (const query of [
      'before=',
      'before=x',
      'before=1',
      `before=${id.slice(0, -1)}`,
      `before=${id}0`,
      `before=${id.replaceAll('-', '')}`,
      `before=${id.slice(0, 14)}4${id.slice(15)}`,
      'before=ffffffff-ffff-7fff-8fff-ffffffffffff',
      'before=00000000-0000-0000-0000-000000000000',
      `before=${encodeURIComponent("' or 1=1 --")}`,
      `before=${id}&before=${id}`,
      'limit=0',
      'limit=201',
      'limit=x',
      'limit=1.5',
      'status=ok',
      'agent_id=0',
      'key_id=99999999999',
    ]) {
      const reply = await org.read(`/me/activity/events?${query}`)
      expect([query, reply.status, reply.json.error?.code]).toEqual([query, 400, 'bad_request'])
    }
    expect((await org.read(`/me/activity/events?limit=200&before=${id.toUpperCase()}`)).json).toEqual({ events: [], next_before: null })
  })

  test('ACT-05 failed calls are listed with the status that the client saw, and without tokens', async () => {
    const org = await newOrg('Failures')
    const refused = { status: 422, body: { error: { message: 'no such thing' } } }
    const broken = () => ({ status: 500, body: { error: { message: 'broken' } } })
    const calls: [string, object][] = [
      ['/v1/chat/completions', { model: 'alpha-only', messages: hello }],
      ['/v1/chat/completions', { model: 'alpha-only', messages: hello, stream: true }],
      ['/v1/messages', { model: 'alpha-only', messages: hello, max_tokens: 20 }],
      ['/v1/responses', { model: 'alpha-only', input: 'hello' }],
      ['/v1/embeddings', { model: 'test-embed', input: 'hello' }],
    ]
    const expected: [number, string][] = []
    for (const [path, body] of calls) {
      app.alpha.script(refused)
      const first = await app.call('POST', path, body, { token: org.key })
      for (const server of [app.alpha, app.beta, app.indus]) server.script(broken)
      const second = await app.call('POST', path, body, { token: org.key })
      for (const server of [app.alpha, app.beta, app.indus]) server.reset()
      expect([path, first.status, second.status]).toEqual([path, 422, 502])
      expected.unshift([502, 'failed'], [422, 'failed'])
    }
    const { json } = await org.read('/me/activity/events?status=failed')
    expect(json.events.map(({ status, outcome }: Json) => [status, outcome])).toEqual(expected)
    for (const event of json.events)
      expect(event).toMatchObject({ tokens: 0, prompt_tokens: 0, completion_tokens: 0, cost_inr: 0, value_inr: 0, key_id: org.keyId })
    expect((await org.read('/me/activity')).json.totals).toMatchObject({ requests: expected.length, errors: expected.length, tokens: 0, cost_inr: 0 })
    expect((await org.read('/me/activity/events?limit=200')).json.events).toHaveLength(expected.length)
  })

  const inserts = fc.array(
    fc.record({
      /** Offsets around two midnights in India. Many of the instants are equal. */
      offsetMs: fc.constantFrom(-dayMs, -dayMs - 1, -2, -1, -1, 0, 0, 0, 1, 500, dayMs),
      /** Around midnight, a call may be admitted on the day after its id was made. */
      drift: fc.constantFrom(0, 0, 0, 2),
      failed: fc.boolean(),
      model: fc.constantFrom('a', 'b'),
    }),
    { maxLength: 12 },
  )

  test('ACT-03 the pages have no gaps or repetitions, even when calls are recorded meanwhile, at equal instants and over midnight', async () => {
    const midnightMs = Date.UTC(2026, 10, 21, 18, 30)
    let round = 0
    await fc.assert(
      fc.asyncProperty(
        inserts,
        fc.array(inserts, { maxLength: 6 }),
        fc.integer({ min: 1, max: 5 }),
        fc.constantFrom('', '&status=failed', '&model=a', '&key_id=none&model=b'),
        async (before, meanwhile, limit, filter) => {
          const org = await newOrg(`Pages ${++round}`)
          const paramsList = (rows: typeof before) =>
            rows.map(({ offsetMs, drift, failed, model }) => {
              const atMs = midnightMs + offsetMs
              return { id: systemIds.uuidv7(atMs - drift), atMs, model, outcome: failed ? ('failed' as const) : ('ok' as const), status: failed ? 502 : 200 }
            })
          const isAsked = ({ outcome, model }: { outcome: string; model: string }): boolean =>
            filter === '' || (filter === '&status=failed' ? outcome === 'failed' : model === filter.at(-1))
          const known = paramsList(before)
          const late = meanwhile.map(paramsList)
          await put(org, known)
          const seen: Json[] = []
          const all = [...known]
          for (let cursor = ''; ; ) {
            const rows = late.shift() ?? []
            const [page] = await Promise.all([org.read(`/me/activity/events?limit=${limit}${filter}${cursor}`), put(org, rows)])
            all.push(...rows)
            expect(page.json.events.length).toBeLessThanOrEqual(limit)
            seen.push(...page.json.events)
            if (page.json.next_before === null) break
            cursor = `&before=${page.json.next_before}`
          }
          const order = all
            .map(({ id, atMs }) => `${istDay(atMs)} ${id}`)
            .sort()
            .reverse()
          const placeOf = ({ id, at }: Json): number => order.indexOf(`${istDay(Date.parse(at))} ${id}`)
          const places = seen.map(placeOf)
          // The order is newest first, no event occurs twice, and all events from before the first page are there.
          expect(places).toEqual([...new Set(places)].sort((a, b) => a - b))
          expect(places).not.toContain(-1)
          const ids = new Set(seen.map(({ id }) => id))
          for (const event of known.filter(isAsked)) expect(ids.has(event.id)).toBe(true)
          const asked = new Set(all.filter(isAsked).map(({ id }) => id))
          for (const id of ids) expect(asked.has(id)).toBe(true)
        },
      ),
      { numRuns: propertyRuns(25), endOnFailure: true },
    )
  })
})

test('PERM-14 every role may create, list and switch organisations, accept invitations, state its attribution, and read activity and usage', async () => {
  for (const role of ['member', 'admin', 'owner'] as const) {
    const { orgId } = await app.otherOrg(`Roles ${role}`)
    const { cookie, email } = await app.newMember(role, { orgId })
    const elsewhere = await app.otherOrg(`Elsewhere ${role}`)
    const invited = await app.call('POST', '/me/members', { email, role: 'member' }, { cookie: await app.signIn(elsewhere.userId, elsewhere.orgId) })
    expect(invited.status, invited.text).toBe(201)
    for (const path of ['/me/usage', '/me/usage/daily', '/me/activity', '/me/activity/events', '/me/invitations', '/me/orgs'])
      expect([role, path, (await app.call('GET', path, undefined, { cookie })).status]).toEqual([role, path, 200])
    const [invitation] = (await app.call('GET', '/me/invitations', undefined, { cookie })).json.invitations
    expect([role, (await app.call('POST', `/me/invitations/${invitation.id}/accept`, {}, { cookie })).status]).toEqual([role, 200])
    const made = await app.call('POST', '/me/orgs', { name: `Made by ${role}` }, { cookie })
    expect([role, made.status]).toEqual([role, 201])
    expect([role, (await app.call('POST', '/me/orgs/switch', { org_id: made.json.id }, { cookie })).status]).toEqual([role, 200])
    expect([role, (await app.call('POST', '/me/orgs/switch', { org_id: orgId }, { cookie })).status]).toEqual([role, 200])
    expect([role, (await app.call('POST', '/me/attribution', { source: 'a friend' }, { cookie })).status]).toEqual([role, 200])
  }
})
