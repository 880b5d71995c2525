import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { PriceFeeds } from '../../../src/gateway/catalog/prices/price-feeds.ts'
import { type Db, statement } from '../../../src/platform/db/db.ts'
import { makeLog } from '../../../src/platform/observe/log.ts'
import { createOutbound } from '../../../src/platform/outbound/outbound.ts'
import { startApp, type TestApp, until } from '../../harness/app.ts'
import { movableClock } from '../../harness/clock.ts'
import { type PriceServers, startPriceServers } from '../../harness/price-servers.ts'

const hourMs = 3600_000
const minuteMs = 60_000
const startMs = Date.UTC(2026, 10, 1, 6)
const clock = movableClock(startMs)
const forget = statement<[]>('test.prices_forget', 'delete from price_feeds')

const listed = (id: string, prompt: unknown, completion: unknown) => ({ id, name: id, context_length: 1000, pricing: { prompt, completion, image: '0' } })

function operatorFile({ alpha }: { alpha: string }): object {
  const route = (input: number, output: number, more: object = {}) => ({ provider: 'alpha', input_inr_per_mtok: input, output_inr_per_mtok: output, ...more })
  const model = (id: string, routes: object[], more: object = {}) => ({ id, kind: 'chat', context_length: 10_000, routes, ...more })
  return {
    providers: [
      { id: 'alpha', base_url: alpha, residency: 'global', auth: 'bearer' },
      { id: 'beta', base_url: alpha, residency: 'global', auth: 'bearer' },
    ],
    models: [
      model('sonar-4.5-mini', [route(30, 60), { ...route(9, 40), provider: 'beta' }]),
      model('renamed-here', [route(10, 10)], { compare_with: 'vendor/their-name:extended' }),
      model('kept-apart', [route(10, 10)], { compare_with: null }),
      model('nobody-else-has-it', [route(10, 10)]),
    ],
  }
}

const ours = (reply: { json: { models: { model: string }[] } }): string[] => reply.json.models.map(({ model }) => model).sort()

let servers: PriceServers
let app: TestApp
const compare = (query = '') => app.call('GET', `/v1/pricing/compare${query}`, undefined, { token: null })
const failures = (): number => app.logLines.filter(line => line.includes('price_feed_failed')).length
/** Returns the comparison after all fetches that a request started have ended. */
async function settledAt(isSo: (json: { stale: boolean; usd_inr: number | null; age_hours: number | null; models: unknown[] }) => boolean) {
  await until(async () => isSo((await compare()).json))
  return compare()
}

beforeAll(async () => {
  servers = await startPriceServers()
  servers.prices = {
    data: [
      listed('vendor/sonar-4-5-mini', '0.00000012345', '0.0000005'),
      listed('vendor/sonar-4.5-mini:free', '0', '0'),
      listed('vendor/their-name:extended', 1e-7, '0'),
      listed('vendor/kept-apart', '0.000001', '0.000001'),
      listed('openrouter/auto', '-1', '-1'),
      { id: 'no-pricing' },
      null,
    ],
  }
  app = await startApp({ clock, operatorFile, env: { ANON_RPM: '100000', ...servers.env } })
})
afterAll(async () => {
  await app.stop()
  await servers.close()
})

describe('GET /v1/pricing/compare', () => {
  test("CAT-14 the reply has the other router's prices in ₹ next to those of the cheapest route in the catalog", async () => {
    const reply = await settledAt(json => json.models.length > 0)
    expect(reply.status).toBe(200)
    expect(reply.json).toEqual({
      currency: 'INR',
      usd_inr: 90,
      source: new URL(servers.env['PRICE_FEED_URL'] ?? '').host,
      fetched_at: expect.stringMatching(/^2026-11-01T06:00/),
      age_hours: 0,
      stale: false,
      models: [
        {
          model: 'sonar-4.5-mini',
          provider: 'beta',
          inputINRPerMtok: 9,
          outputINRPerMtok: 40,
          compared_with: { id: 'vendor/sonar-4-5-mini', inputINRPerMtok: 11.1105, outputINRPerMtok: 45 },
          difference_percent: { input: -19, output: -11.1 },
        },
        {
          model: 'renamed-here',
          provider: 'alpha',
          inputINRPerMtok: 10,
          outputINRPerMtok: 10,
          compared_with: { id: 'vendor/their-name:extended', inputINRPerMtok: 9, outputINRPerMtok: 0 },
          difference_percent: { input: 11.1, output: null },
        },
      ],
    })
    expect(servers.requests.toSorted()).toEqual(['prices', 'rates'])
  })

  test('CAT-14 ?model selects one model. A model that the other router lacks gives an empty list, and an unknown model 404', async () => {
    expect(ours(await compare('?model=renamed-here'))).toEqual(['renamed-here'])
    for (const id of ['nobody-else-has-it', 'kept-apart', 'auto']) expect((await compare(`?model=${id}`)).json, id).toMatchObject({ usd_inr: 90, models: [] })
    const unknown = await compare('?model=nobody')
    expect([unknown.status, unknown.json.error.code]).toEqual([404, 'model_not_found'])
    expect((await compare('?model=')).status).toBe(404)
  })

  test('200 concurrent requests cause at most one fetch, and nothing is fetched again within the hour', async () => {
    servers.requests.length = 0
    const names: string[] = []
    const many: Db['many'] = app.db.many.bind(app.db)
    const counting: Db['many'] = (wanted, ...params) => {
      names.push(wanted.name)
      return many(wanted, ...params)
    }
    Object.assign(app.db, { many: counting })
    for (const aheadMs of [0, 2 * minuteMs]) {
      names.length = 0
      clock.advance(aheadMs)
      const replies = await Promise.all(Array.from({ length: 200 }, () => compare()))
      expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200]))
      expect(names.filter(name => name === 'catalog.find_price_feeds').length).toBe(aheadMs === 0 ? 0 : 1)
    }
    Object.assign(app.db, { many })
    expect(servers.requests).toEqual([])
  })

  test('CAT-14 prices are fetched at most once an hour, even after a failure. Old prices stay, marked as stale, with their age', async () => {
    servers.requests.length = 0
    servers.status = 503
    clock.advance(hourMs)
    const known = failures()
    await until(async () => (await compare()).status === 200 && failures() === known + 2)
    expect(servers.requests.toSorted()).toEqual(['prices', 'rates'])
    clock.advance(50 * minuteMs)
    const late = await settledAt(json => json.stale)
    expect(late.json).toMatchObject({ usd_inr: 90, stale: true, age_hours: 1 })
    expect(ours(late)).toEqual(['renamed-here', 'sonar-4.5-mini'])
    expect(servers.requests.length).toBe(2)
    servers.status = 200
    servers.rates = { base: 'USD', rates: { INR: 100 } }
    clock.advance(11 * minuteMs)
    const again = await settledAt(json => json.usd_inr === 100)
    expect(again.json).toMatchObject({ stale: false, age_hours: 0 })
    expect(again.json.models[0].compared_with.inputINRPerMtok).toBe(12.345)
    expect(servers.requests.length).toBe(4)
  })

  test.each([
    ['no JSON', 'Not found, sorry', { rates: { INR: 90 } }],
    ['no list', { models: [] }, { rates: { INR: 90 } }],
    ['a list without prices', { data: [listed('a', 'free', 'free'), listed('b', '-1', '-1')] }, { rates: { INR: 90 } }],
    ['a rate of another currency', { data: [listed('vendor/sonar-4.5-mini', '1e-7', '1e-7')] }, { base: 'EUR', rates: { INR: 90 } }],
    ['a rate that cannot be', { data: [listed('vendor/sonar-4.5-mini', '1e-7', '1e-7')] }, { rates: { INR: 0 } }],
  ])('CAT-14 with %s there and nothing stored, the reply is 200 with an empty list marked as stale', async (_what, prices, rates) => {
    await app.db.exec(forget)
    servers.prices = prices
    servers.rates = rates
    clock.advance(2 * hourMs)
    const known = failures()
    await until(async () => (await compare()).status === 200 && failures() > known)
    const reply = await settledAt(json => json.models.length === 0 && json.stale)
    expect([reply.status, reply.json.stale, reply.json.models]).toEqual([200, true, []])
  })

  test("the key in a source's URL is in no reply, log line or table", async () => {
    for (const text of [(await compare()).text, app.logLines.join('\n'), await app.dump()]) expect(text).not.toMatch(/list-secret|rate-secret/)
  })
})

describe('times and processes of fetches', () => {
  const prices = { data: [listed('vendor/x', '0.000001', '0.000002')] }
  const everyMs = hourMs

  test('CAT-14 only one of many processes fetches each hour. A job continues for a day after the last request, and then no source is called', async () => {
    await app.db.exec(forget)
    servers.prices = prices
    servers.rates = { rates: { INR: 90 } }
    servers.requests.length = 0
    const outbound = createOutbound({ connectTimeoutMs: 1000, firstByteTimeoutMs: 5000, streamIdleTimeoutMs: 5000, allow: [] })
    const log = makeLog('silent')
    const processes = Array.from(
      { length: 6 },
      () =>
        new PriceFeeds({
          db: app.db,
          clock,
          log,
          dial: request => outbound.toProvider(request),
          pricesUrl: servers.env['PRICE_FEED_URL'] ?? null,
          rateUrl: servers.env['FX_URL'] ?? null,
          everyMs,
        }),
    )
    const job = new AbortController().signal
    await Promise.all(processes.map(feeds => feeds.forReader()))
    expect(servers.requests.toSorted()).toEqual(['prices', 'rates'])
    for (const feeds of processes) expect((await feeds.forReader()).prices?.list).toEqual([{ id: 'vendor/x', input: '0.000001', output: '0.000002' }])
    for (let hour = 1; hour < 24; hour++) {
      clock.advance(hourMs)
      await Promise.all(processes.map(feeds => feeds.keepFresh(job)))
      expect(servers.requests.length, `hour ${hour}`).toBe(2 + 2 * hour)
    }
    clock.advance(hourMs + 1)
    await Promise.all(processes.map(feeds => feeds.keepFresh(job)))
    expect(servers.requests.length).toBe(48)
    await processes[0]?.forReader()
    expect(servers.requests.length).toBe(50)
    await outbound.close()
  })

  test('a source that hangs delays the first request only briefly', async () => {
    await app.db.exec(forget)
    servers.hang = true
    clock.advance(2 * hourMs)
    const startedMs = performance.now()
    expect((await compare()).status).toBe(200)
    expect(performance.now() - startedMs).toBeLessThan(12_000)
    servers.hang = false
  })

  test('with an empty PRICE_FEED_URL the list is empty, and no source is called', async () => {
    servers.requests.length = 0
    const quiet = await startApp({ env: { ...servers.env, PRICE_FEED_URL: '' } })
    try {
      const reply = await quiet.call('GET', '/v1/pricing/compare', undefined, { token: null })
      expect(reply.json).toEqual({ currency: 'INR', usd_inr: null, source: null, fetched_at: null, age_hours: null, stale: false, models: [] })
      expect(servers.requests).toEqual([])
    } finally {
      await quiet.stop()
    }
  })
})
