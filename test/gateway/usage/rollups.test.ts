/** The sums by day equal those of the events, for any order and repetition of flushes and with concurrent writers. */
import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { inOrder } from '../../../src/gateway/limits/journal/flush-batch.ts'
import { insertUsageEvents } from '../../../src/gateway/usage/events/apply.ts'
import type { Outcome, UsageEvent } from '../../../src/gateway/usage/events/record.ts'
import { UsageRollups } from '../../../src/gateway/usage/rollups/rollup-rebuild.ts'
import { keepsRollups } from '../../../src/gateway/usage/rollups/rollups.ts'
import { statement } from '../../../src/platform/db/db.ts'
import { latencyBucket } from '../../../src/platform/observe/latency-buckets.ts'
import { istDay, istHour } from '../../../src/platform/values/ist-time.ts'
import { type TestDatabase, testDatabase } from '../../harness/database.ts'
import { propertyRuns } from '../../harness/property-runs.ts'
import { eventOf, movableClock, request } from '../limits/engine.ts'

/** Midnight in India between October and November 2026. */
const edgeMs = Date.UTC(2026, 9, 31, 18, 30)
const hourMs = 3600_000

const eventsWith = fc.record({
  atMs: fc.constantFrom(-24 * hourMs, -1, 0, 1, 24 * hourMs - 1, 24 * hourMs).map(offset => edgeMs + offset),
  orgId: fc.integer({ min: 1, max: 3 }),
  keyId: fc.constantFrom(null, 1, 2),
  userId: fc.constantFrom(null, 3),
  workspaceId: fc.constantFrom(null, 4, 5),
  agentId: fc.constantFrom(null, 7),
  agentLabel: fc.constantFrom(null, 'ci', 'night "shift"'),
  model: fc.constantFrom('a', 'b', 'vendor/c:free', 'x'.repeat(400)),
  provider: fc.constantFrom('alpha', 'beta', 'byoe:own'),
  residency: fc.constantFrom('india' as const, 'global' as const, 'unknown' as const),
  byok: fc.boolean(),
  outcome: fc.constantFrom<Outcome>('ok', 'failed', 'client_gone', 'upstream_broke', 'cut', 'interrupted'),
  status: fc.constantFrom(200, 400, 502),
  promptTokens: fc.integer({ min: 0, max: 1e9 }),
  completionTokens: fc.integer({ min: 0, max: 1000 }),
  valueUinr: fc.bigInt({ min: 0n, max: 10n ** 13n }),
  latencyMs: fc.constantFrom(0, 0.4, 1, 2, 1000, 1e9),
})

type Params = typeof eventsWith extends fc.Arbitrary<infer T> ? T : never

const rowsOf = (table: string, columns: string) =>
  statement<[], { row: string }>(`test.sums_${table}`, `select concat_ws('|', ${columns}) as "row" from ${table} where requests > 0 order by 1`)
const byDay = rowsOf('usage_days', 'org_id, day, model, provider, residency, byok, requests, errors, prompt_tokens, completion_tokens, value_uinr, cost_uinr')
const byKey = rowsOf('usage_days_by_key', 'org_id, day, key_id, requests, errors, prompt_tokens, completion_tokens, value_uinr, cost_uinr')
const byKeyModel = rowsOf(
  'usage_days_by_key_model',
  'org_id, key_id, day, model, provider, byok, requests, errors, prompt_tokens, completion_tokens, value_uinr, cost_uinr',
)
const byWeek = rowsOf('usage_weeks_by_key', 'org_id, model, week, key_id, requests, errors, prompt_tokens, completion_tokens, value_uinr, cost_uinr')
const byAgent = rowsOf(
  'usage_days_by_agent',
  'org_id, day, agent_id, agent_label, residency, requests, errors, prompt_tokens, completion_tokens, value_uinr, cost_uinr',
)
const callers = 'user_id, workspace_id, agent_id, model, provider, byok, requests, errors, prompt_tokens, completion_tokens, value_uinr, cost_uinr'
const byCaller = rowsOf('usage_days_by_caller', `org_id, day, ${callers}`)
const byCallerHour = rowsOf('usage_hours_by_caller', `org_id, day, hour, ${callers}`)
const byMember = rowsOf('usage_days_by_member', 'org_id, day, user_id, requests, errors, prompt_tokens, completion_tokens, value_uinr, cost_uinr')
const dayLatencies = rowsOf('usage_day_latencies', 'org_id, day, model, provider, bucket, requests')
const hourLatencies = rowsOf('usage_hour_latencies', 'org_id, day, hour, model, provider, bucket, requests')
const latencies = rowsOf('model_latencies', 'day, model, bucket, requests')
const forget = statement<[]>(
  'test.sums_forget',
  `with a as (delete from usage_events), b as (delete from usage_days), c as (delete from usage_days_by_key), d as (delete from usage_days_by_key_model),
     e as (delete from usage_days_by_agent), f as (delete from model_days), g as (delete from usage_weeks_by_key),
     h as (delete from usage_days_by_caller), i as (delete from usage_days_by_member), j as (delete from usage_hours_by_caller),
     k as (delete from usage_day_latencies), l as (delete from usage_hour_latencies) delete from model_latencies`,
)
const breakSums = statement<[]>('test.sums_break', 'update usage_days_by_agent set requests = requests + 1, value_uinr = 0')

describe('sums of usage by day', () => {
  let database: TestDatabase
  let sums: UsageRollups
  const keep = inOrder<UsageEvent>([insertUsageEvents, keepsRollups(3)])
  const put = (events: readonly UsageEvent[], apply = keep) => database.db.tx(tx => apply(tx, events))
  const made = (over: Params): UsageEvent => eventOf(request(1n, {}, over.atMs), 0n, { ...over, costUinr: over.byok ? 0n : over.valueUinr / 2n })

  beforeAll(async () => {
    database = await testDatabase()
    sums = new UsageRollups({ db: database.db, clock: movableClock(edgeMs + 30 * hourMs), keepDays: 400, journal: { flushNow: () => Promise.resolve() } })
  })
  afterAll(() => database.dispose())
  beforeEach(() => database.db.exec(forget))

  /** The expected rows of a table: events grouped by a key, with their sums. */
  const grouped = (events: readonly UsageEvent[], keyOf: (event: UsageEvent) => readonly unknown[]): string[] => {
    const groups = new Map<string, bigint[]>()
    for (const event of events) {
      const key = keyOf(event).map(String).join('|')
      const now = groups.get(key) ?? [0n, 0n, 0n, 0n, 0n, 0n]
      const isError = event.outcome !== 'ok' && event.outcome !== 'client_gone'
      const more = [1n, isError ? 1n : 0n, BigInt(event.promptTokens), BigInt(event.completionTokens), event.valueUinr, event.costUinr]
      groups.set(
        key,
        now.map((sum, i) => sum + (more[i] ?? 0n)),
      )
    }
    return [...groups].map(([key, figures]) => `${key}|${figures.join('|')}`).sort()
  }
  const stored = async (rows: typeof byDay): Promise<string[]> => (await database.db.many(rows)).map(({ row }) => row).sort()
  const modelOf = ({ model }: UsageEvent): string => model.slice(0, 300)
  const callerOf = (e: UsageEvent) => [e.userId ?? 0, e.workspaceId ?? 0, e.agentId ?? 0, modelOf(e), e.provider, flag(e.byok)]
  /** The tables by caller and by hour have the sums of the events. */
  const expectCallers = async (all: readonly UsageEvent[]): Promise<void> => {
    expect(await stored(byCaller)).toEqual(grouped(all, e => [e.orgId, istDay(e.atMs), ...callerOf(e)]))
    expect(await stored(byCallerHour)).toEqual(grouped(all, e => [e.orgId, istDay(e.atMs), istHour(e.atMs), ...callerOf(e)]))
    expect(await stored(byMember)).toEqual(grouped(all, e => [e.orgId, istDay(e.atMs), e.userId ?? 0]))
    const served = all.filter(({ outcome, status }) => outcome === 'ok' && status < 400)
    const bucketOf = (e: UsageEvent) => latencyBucket(Math.round(e.latencyMs))
    /** Each call counts for its model and provider, for each of them, and for all. */
    const counted = (spanOf: (e: UsageEvent) => readonly unknown[]): string[] =>
      [false, true].flatMap(anyModel =>
        [false, true].flatMap(anyProvider =>
          grouped(served, e => [e.orgId, ...spanOf(e), anyModel ? '' : modelOf(e), anyProvider ? '' : e.provider, bucketOf(e)]).map(row =>
            row.split('|').slice(0, -5).join('|'),
          ),
        ),
      )
    expect(await stored(dayLatencies)).toEqual(counted(e => [istDay(e.atMs)]).sort())
    expect(await stored(hourLatencies)).toEqual(counted(e => [istDay(e.atMs), istHour(e.atMs)]).sort())
  }
  /** The Monday of 31 October and 1 November, or the next Monday. */
  const weekOf = (event: UsageEvent): string => (istDay(event.atMs) < '2026-11-02' ? '2026-10-26' : '2026-11-02')
  const weeksOf = (events: readonly UsageEvent[]): string[] =>
    ['', null].flatMap(all => grouped(events, e => [e.orgId, all ?? modelOf(e), weekOf(e), e.keyId ?? 0])).sort()
  const flag = (value: boolean): string => (value ? 't' : 'f')

  test('every table contains the sums of its events, at the edges of IST days and months, and no event counts twice', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.array(eventsWith, { minLength: 1, maxLength: 12 }), { minLength: 1, maxLength: 4 }), fc.nat(3), async (batches, again) => {
        await database.db.exec(forget)
        const flushed = batches.map(batch => batch.map(made))
        for (const batch of flushed) await put(batch)
        // A range that is flushed again after a crash, together with a new event.
        const late = made({ ...(batches[0]?.[0] as Params) })
        await put([...(flushed[again] ?? []), late])
        const all = [...flushed.flat(), late]
        const day = (event: UsageEvent) => istDay(event.atMs)
        expect(await stored(byDay)).toEqual(grouped(all, e => [e.orgId, day(e), modelOf(e), e.provider, e.residency, flag(e.byok)]))
        expect(await stored(byKey)).toEqual(grouped(all, e => [e.orgId, day(e), e.keyId ?? 0]))
        expect(await stored(byKeyModel)).toEqual(grouped(all, e => [e.orgId, e.keyId ?? 0, day(e), modelOf(e), e.provider, flag(e.byok)]))
        expect(await stored(byWeek)).toEqual(weeksOf(all))
        expect(await stored(byAgent)).toEqual(grouped(all, e => [e.orgId, day(e), e.agentId ?? 0, e.agentId === null ? (e.agentLabel ?? '') : '', e.residency]))
        await expectCallers(all)
        expect(await sums.disagreements(10)).toEqual([])
      }),
      { numRuns: propertyRuns(12) },
    )
  })

  test('a latency is counted in its bucket, for served calls only', async () => {
    const served = made({
      ...(fc.sample(eventsWith, 1)[0] as Params),
      atMs: edgeMs,
      model: 'a',
      provider: 'alpha',
      outcome: 'ok',
      status: 200,
      latencyMs: 1000,
    })
    await put([served, { ...made({ ...served, outcome: 'failed', status: 502 } as never) }])
    expect(await stored(latencies)).toEqual([`2026-11-01|a|${latencyBucket(1000)}|1`])
  })

  test('days that lack the events of an earlier version are found and computed again, and correct days do not change', async () => {
    const events = fc.sample(eventsWith, 60).map(made)
    await put(events.slice(0, 30))
    // Stored by a process that keeps no sums.
    await put(events.slice(30), insertUsageEvents)
    const days = [...new Set(events.slice(30).map(event => istDay(event.atMs)))].sort()
    expect((await sums.disagreements(10)).map(({ day }) => day)).toEqual(days)
    expect((await sums.rebuild(undefined, undefined)).map(({ day }) => day)).toEqual(days)
    expect(await sums.disagreements(10)).toEqual([])
    expect(await stored(byKey)).toEqual(grouped(events, e => [e.orgId, istDay(e.atMs), e.keyId ?? 0]))
    expect(await stored(byWeek)).toEqual(weeksOf(events))
    await expectCallers(events)
    expect(await sums.rebuild(undefined, undefined)).toEqual([])
    await database.db.exec(breakSums)
    expect(await sums.disagreements(10)).not.toEqual([])
    await sums.rebuild('2026-10-01', '2026-11-30')
    expect(await sums.disagreements(10)).toEqual([])
    for (const [from, to] of [
      ['2026-02-30', undefined],
      ['2026-11-02', '2026-11-01'],
      ['2020-01-01', undefined],
    ] as const)
      await expect(sums.rebuild(from, to)).rejects.toMatchObject({ code: 'bad_request' })
  })

  test('concurrent flushes of several processes over the same rows, during a rebuild of a day, neither deadlock nor lose a call', async () => {
    const older = insertUsageEvents
    const processes = [0, 1, 2].map(shard => inOrder<UsageEvent>([insertUsageEvents, keepsRollups(shard)])).concat(older)
    const batches = processes.map(() => fc.sample(eventsWith, 120).map(made))
    const flush = async (events: readonly UsageEvent[], apply: typeof keep): Promise<void> => {
      for (let i = 0; i < events.length; i += 15) await put(events.slice(i, i + 15), apply)
    }
    const rebuilds = async (): Promise<void> => {
      for (let i = 0; i < 6; i++) await sums.rebuild(undefined, undefined)
    }
    await Promise.all([...processes.map((apply, i) => flush(batches[i] ?? [], apply)), rebuilds()])
    await sums.rebuild(undefined, undefined)
    expect(await sums.disagreements(10)).toEqual([])
    expect(await stored(byKey)).toEqual(grouped(batches.flat(), e => [e.orgId, istDay(e.atMs), e.keyId ?? 0]))
  })
})
