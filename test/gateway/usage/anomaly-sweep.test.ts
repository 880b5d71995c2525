import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { sumLastHour } from '../../../src/gateway/usage/anomalies/anomaly-queries.ts'
import { sweepAnomalies } from '../../../src/gateway/usage/anomalies/anomaly-sweep.ts'
import { insertUsageEvents } from '../../../src/gateway/usage/events/apply.ts'
import type { Outcome, UsageEvent } from '../../../src/gateway/usage/events/record.ts'
import { statement } from '../../../src/platform/db/db.ts'
import { systemIds } from '../../../src/platform/values/ids.ts'
import { uinrFromInr } from '../../../src/platform/values/money.ts'
import { movableClock } from '../../harness/clock.ts'
import { testDatabase } from '../../harness/database.ts'

const database = await testDatabase()
const { db } = database
afterAll(() => database.dispose())

interface Told {
  readonly orgId: number
  readonly data: { readonly metric: string; readonly observed: number; readonly baseline: number; readonly ratio: number | null }
}
const told = statement<[], Told>('test.anomalies_told', `select org_id as "orgId", data from webhook_events where type = 'request.anomaly' order by seq`)
const clean = statement<[]>(
  'test.anomalies_clean',
  `with events as (delete from webhook_events), anomalies as (delete from usage_anomalies), hours as (delete from usage_hours) delete from usage_events`,
)
const hours = statement<[], { orgId: number; hour: Date; spend: bigint }>(
  'test.anomalies_hours',
  `select org_id as "orgId", hour, spend_uinr as "spend" from usage_hours order by 1, 2`,
)
const planText = sumLastHour.text
  .replace('$1::date[]', `'{2026-11-20}'::date[]`)
  .replace('$2', `'${systemIds.uuidv7(Date.UTC(2026, 10, 20, 17, 0, 0))}'`)
  .replace('$3', `'${systemIds.uuidv7(Date.UTC(2026, 10, 20, 18, 0, 0))}'`)
  .replace(/\$[456]/g, '1')
  .replace('$7', `'{}'`)
const explained = statement<[], { 'QUERY PLAN': string }>('test.anomalies_plan', `explain ${planText}`)

const hourMs = 3600_000
/** 20 November, 23:30 in India. The sweep compares an hour that includes midnight. */
const clock = movableClock()
const startMs = Date.UTC(2026, 10, 20, 18, 0, 0)
beforeEach(async () => {
  clock.moveTo(startMs)
  await db.exec(clean)
})

const event = (orgId: number, atMs: number, inr: number, outcome: Outcome = 'ok'): UsageEvent => ({
  id: systemIds.uuidv7(atMs),
  atMs,
  requestId: 'req_x',
  orgId,
  userId: null,
  keyId: 1,
  workspaceId: null,
  agentId: null,
  agentLabel: null,
  kind: 'chat',
  model: 'm',
  provider: 'p',
  residency: 'india',
  streamed: false,
  byok: false,
  status: 200,
  outcome,
  promptTokens: 0,
  completionTokens: 0,
  cachedTokens: 0,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
  images: 0,
  audioSeconds: 0,
  characters: 0,
  estimated: false,
  valueUinr: uinrFromInr(inr),
  costUinr: 0n,
  latencyMs: 1,
  firstByteMs: null,
})
const use = (...events: UsageEvent[]) => db.tx(tx => insertUsageEvents(tx, events))
const sweep = () => sweepAnomalies({ db, clock, ids: systemIds, journal: { flushNow: async () => {} } }, new AbortController().signal)

describe('the sweep over anomalies', () => {
  test('the sweep compares the last hour with the mean hour of seven days, and ignores older use', async () => {
    await use(event(1, startMs - 8 * 24 * hourMs, 9_999), ...Array.from({ length: 7 }, (_, day) => event(1, startMs - (day * 24 + 5) * hourMs, 480)))
    // 7 × 480 / 168 = 20 per hour.
    await use(event(1, startMs - 50 * 60_000, 60), event(1, startMs - 60_000, 39.999999))
    await sweep()
    expect(await db.many(told)).toEqual([])
    await use(event(1, startMs - 1000, 0.000001))
    await sweep()
    expect((await db.many(told)).map(({ orgId, data }) => [orgId, data.metric, data.observed, data.baseline, data.ratio])).toEqual([[1, 'spend', 100, 20, 5]])
  })

  test('an organisation without use in the week is compared with zero, and a new organisation is not checked', async () => {
    await use(event(1, startMs - 20 * 24 * hourMs, 1), event(1, startMs - 60_000, 500))
    await use(event(2, startMs - 60_000, 500))
    await use(event(3, startMs - 20 * hourMs, 1), event(3, startMs - 60_000, 500))
    await use(event(4, startMs - 27 * hourMs, 1), event(4, startMs - 60_000, 500))
    await sweep()
    const rows = await db.many(told)
    expect(rows.map(({ orgId, data }) => [orgId, data.ratio === null])).toEqual([
      [1, true],
      [4, false],
    ])
  })

  test('the sweep computes the sums of every hour once, also over midnight in India, and deletes old hours', async () => {
    await use(...Array.from({ length: 12 }, (_, half) => event(1, startMs - 10 * hourMs + half * hourMs + 1800_000, half + 1)))
    for (let step = 0; step < 10; step++) {
      await sweep()
      clock.advance(20 * 60_000)
    }
    clock.moveTo(startMs + 5 * hourMs)
    await sweep()
    expect((await db.many(hours)).map(({ spend }) => spend)).toEqual(Array.from({ length: 12 }, (_, half) => uinrFromInr(half + 1)))
    clock.moveTo(startMs + 10 * 24 * hourMs)
    await sweep()
    expect(await db.many(hours)).toEqual([])
  })

  test('two concurrent processes report an anomaly once, and a call that its client gave up is not an error', async () => {
    await use(event(1, startMs - 30 * hourMs, 1), ...Array.from({ length: 50 }, (_, n) => event(1, startMs - 1000 - n, 0, 'failed')))
    await use(event(2, startMs - 30 * hourMs, 1), ...Array.from({ length: 90 }, (_, n) => event(2, startMs - 1000 - n, 0, 'client_gone')))
    await Promise.all([sweep(), sweep(), sweep()])
    expect((await db.many(told)).map(({ orgId, data }) => [orgId, data.metric])).toEqual([[1, 'errors']])
  })

  test('the sweep reads the last hour by the primary key', async () => {
    await use(...Array.from({ length: 4000 }, (_, n) => event(1, startMs - 30 * hourMs + n * 28_000, 0)))
    await db.script('analyze usage_events')
    const plan = (await db.many(explained)).map(row => row['QUERY PLAN']).join('\n')
    expect(plan).toMatch(/Index Cond: \(\(day = ANY .*\) AND \(id >= .*\) AND \(id < /)
  })
})
