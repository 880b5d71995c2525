import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { violationsOfSpend } from '../../../src/gateway/limits/engine/queries.ts'
import { violationsOfDebits } from '../../../src/gateway/limits/journal/recovery-queries.ts'
import { ActivityEvents } from '../../../src/gateway/usage/activity/activity-events.ts'
import { insertUsageEvents } from '../../../src/gateway/usage/events/apply.ts'
import { labelsMax, modelsMax } from '../../../src/gateway/usage/events/bounded-names.ts'
import { makePartitions } from '../../../src/gateway/usage/events/partitions.ts'
import type { UsageEvent } from '../../../src/gateway/usage/events/record.ts'
import { deleteOldUsage } from '../../../src/gateway/usage/events/usage-retention.ts'
import { findKeptFrom, listPartitions } from '../../../src/gateway/usage/events/usage-retention-queries.ts'
import { csvLine } from '../../../src/gateway/usage/reports/csv.ts'
import { UsageReports } from '../../../src/gateway/usage/reports/reports.ts'
import { activitySpan, lastDays, monthSpan, weeksIn } from '../../../src/gateway/usage/reports/usage-span.ts'
import { UsageRollups } from '../../../src/gateway/usage/rollups/rollup-rebuild.ts'
import { keepsRollups } from '../../../src/gateway/usage/rollups/rollups.ts'
import { statement } from '../../../src/platform/db/db.ts'
import { silentLog } from '../../../src/platform/observe/log.ts'
import { type TestDatabase, testDatabase } from '../../harness/database.ts'
import { eventOf, movableClock, request } from '../limits/engine.ts'

const noon = Date.parse('2026-11-21T06:30:00Z')
let database: TestDatabase
let reports: UsageReports

const put = async (atMs: number, over: Partial<UsageEvent>): Promise<void> => {
  const event = eventOf(request(1n, {}, atMs), 0n, over)
  await database.db.tx(async tx => {
    expect(await insertUsageEvents(tx, [event])).toEqual([event.id])
    expect(await insertUsageEvents(tx, [event])).toEqual([])
    await keepsRollups(0)(tx, [event])
  })
}

it('the default span is the month to date, and an invalid span is refused', () => {
  expect(monthSpan(undefined, undefined, noon)).toEqual({ from: '2026-11-01', to: '2026-11-21' })
  for (const [from, to] of [
    ['2026-02-30', undefined],
    ['x', undefined],
    ['2026-11-02', '2026-11-01'],
  ] as const)
    expect(() => monthSpan(from, to, noon)).toThrow(/calendar day|after/)
})

it('spans may include leap days, may omit an end, and have a maximum length', () => {
  const leapDay = Date.parse('2028-02-29T18:29:59.999Z')
  expect(monthSpan(undefined, undefined, leapDay)).toEqual({ from: '2028-02-01', to: '2028-02-29' })
  expect(monthSpan(undefined, undefined, leapDay + 1)).toEqual({ from: '2028-03-01', to: '2028-03-01' })
  expect(monthSpan(undefined, '2026-05-09', noon)).toEqual({ from: '2026-05-01', to: '2026-05-09' })
  expect(lastDays(30, noon)).toEqual({ from: '2026-10-23', to: '2026-11-21' })
  expect(activitySpan(undefined, undefined, noon)).toEqual({ from: '2026-10-23', to: '2026-11-21' })
  expect(activitySpan(undefined, '2028-03-01', noon)).toEqual({ from: '2028-02-01', to: '2028-03-01' })
  expect(activitySpan('2026-11-20', undefined, noon)).toEqual({ from: '2026-11-20', to: '2026-11-21' })
  expect(activitySpan('2028-01-01', '2028-12-31', noon)).toEqual({ from: '2028-01-01', to: '2028-12-31' })
  for (const [from, to] of [
    ['2027-01-01', '2028-01-02'],
    ['2027-02-29', '2027-03-01'],
    ['2026-11-22', undefined],
  ] as const)
    expect(() => activitySpan(from, to, noon)).toThrow(/366 days|calendar day|after/)
})

it('a span consists of its whole weeks and the days around them. Each day occurs once, and the last day is never in a week', () => {
  const dayMs = 24 * 3600_000
  const dayAt = (n: number): string => new Date(n * dayMs).toISOString().slice(0, 10)
  const until = (first: string, last: string): string[] => {
    const days: string[] = []
    for (let n = Date.parse(first) / dayMs; n <= Date.parse(last) / dayMs; n++) days.push(dayAt(n))
    return days
  }
  fc.assert(
    fc.property(fc.constantFrom(0, 19_000, 20_000, 2_932_770), fc.nat(60), fc.nat(60), (base, begin, more) => {
      const [from, to] = [dayAt(base + begin), dayAt(base + begin + more)]
      const { headTo, tailFrom } = weeksIn({ from, to })
      const whole = tailFrom === 'infinity' ? [] : until(dayAt(Date.parse(headTo) / dayMs + 1), dayAt(Date.parse(tailFrom) / dayMs - 1))
      const tail = tailFrom === 'infinity' ? [] : until(tailFrom, to)
      expect([...until(from, headTo), ...whole, ...tail]).toEqual(until(from, to))
      expect(whole.length % 7).toBe(0)
      for (const monday of whole.filter((_, i) => i % 7 === 0)) expect(new Date(monday).getUTCDay()).toBe(1)
      expect(tailFrom <= to || headTo === to).toBe(true)
    }),
  )
  expect(weeksIn({ from: '9999-12-30', to: '9999-12-31' })).toEqual({ headTo: '9999-12-31', tailFrom: 'infinity' })
})

it('CSV cells are quoted, and a spreadsheet cannot read them as formulas', () => {
  expect(csvLine(['=1+1', 'a,b', 'say "x"', 5, -3])).toBe(`'=1+1,"a,b","say ""x""",5,-3\r\n`)
})

describe('on a database', () => {
  beforeEach(async () => {
    database = await testDatabase()
    await makePartitions(database.db, noon, silentLog)
    await makePartitions(database.db, noon, silentLog)
    reports = new UsageReports({
      db: database.db,
      clock: movableClock(noon),
      journal: { flushNow: () => Promise.resolve() },
      agentNames: () => Promise.resolve(new Map([[9, 'reader']])),
    })
  })
  afterEach(() => database.dispose())

  it('the report sums by model and agent, over IST days with both ends included', async () => {
    await put(Date.parse('2026-11-19T18:29:59Z'), { valueUinr: 1n, costUinr: 1n })
    await put(Date.parse('2026-11-19T18:30:00Z'), { model: 'a', agentId: 9, valueUinr: 1_500_000n, costUinr: 0n, byok: true })
    await put(Date.parse('2026-11-20T18:29:59Z'), { model: 'b', agentLabel: 'ci', valueUinr: 250_000n, costUinr: 250_000n })
    await put(Date.parse('2026-11-20T18:30:00Z'), { valueUinr: 1n, costUinr: 1n })
    const report = await reports.report(1, reports.span('2026-11-20', '2026-11-20'))
    expect(report.totals).toEqual({
      requests: 2,
      prompt_tokens: 6,
      completion_tokens: 8,
      total_tokens: 14,
      cost_inr: 0.25,
      value_inr: 1.75,
      cost_uinr: 250_000,
      cached_tokens: 0,
      cache_write_tokens: 0,
    })
    expect(report.by_model.map(({ model, value_inr, cost_inr }) => ({ model, value_inr, cost_inr }))).toEqual([
      { model: 'a', value_inr: 1.5, cost_inr: 0 },
      { model: 'b', value_inr: 0.25, cost_inr: 0.25 },
    ])
    expect(report.by_agent.map(({ id, name, label }) => ({ id, name, label }))).toEqual([
      { id: 9, name: 'reader', label: null },
      { id: null, name: null, label: 'ci' },
    ])
    expect(await reports.csv(1, report)).toContain('2026-11-20,a,p,1,3,4,0,1.5,7,0,0,0,0\r\n')
    expect((await reports.report(2, report)).totals.requests).toBe(0)
  })

  it('models above a thousand a day share one row, and a rebuild gives the same sums', async () => {
    const keep = keepsRollups(0)
    const atMs = Date.parse('2026-11-02T06:30:00Z')
    const events = Array.from({ length: modelsMax + 20 }, (_, i) =>
      eventOf(request(1n, {}, atMs), 0n, { model: `p/${i}`, provider: 'p', byok: true, valueUinr: 3n, costUinr: 2n }),
    )
    await database.db.tx(async tx => {
      await insertUsageEvents(tx, events)
      await keep(tx, events)
    })
    const span = { from: '2026-11-02', to: '2026-11-02' }
    const report = await reports.report(1, span)
    expect([report.by_model.length, report.by_model.at(-1), report.totals.requests]).toMatchObject([
      modelsMax + 1,
      { model: '(others)', requests: 20, cost_uinr: 40 },
      modelsMax + 20,
    ])
    const sums = new UsageRollups({ db: database.db, clock: movableClock(noon), keepDays: 400, journal: { flushNow: () => Promise.resolve() } })
    expect(await sums.disagreements(400)).toEqual([])
    await database.db.script("update usage_days set requests = requests + 1 where model = 'p/1'")
    expect((await sums.rebuild(undefined, undefined)).map(({ day }) => day)).toEqual(['2026-11-02'])
    expect((await reports.report(1, span)).by_model).toHaveLength(modelsMax + 1)
    expect(await sums.disagreements(400)).toEqual([])
  })

  it('agent labels above a thousand a day share one row, and the rows still add up to the totals', async () => {
    const keep = keepsRollups(0)
    const flush = async (count: number, name: string, day: number): Promise<void> => {
      const atMs = Date.parse(`2026-11-0${day}T06:30:00Z`)
      const events = Array.from({ length: count }, (_, i) => eventOf(request(1n, {}, atMs), 0n, { agentLabel: `${name} ${i}`, valueUinr: 3n, costUinr: 2n }))
      await database.db.tx(async tx => {
        await insertUsageEvents(tx, events)
        await keep(tx, events)
      })
    }
    await flush(labelsMax + 20, 'session', 2)
    await flush(15, 'session', 2)
    await flush(labelsMax + 20, 'another', 3)
    await put(Date.parse('2026-11-02T06:30:00Z'), { agentId: 9, valueUinr: 1n, costUinr: 1n })
    const one = await reports.report(1, { from: '2026-11-02', to: '2026-11-02' })
    expect([one.by_agent.length, one.by_agent.at(-1)]).toMatchObject([labelsMax + 2, { label: '(others)', requests: 20, cost_uinr: 40 }])
    const both = await reports.report(1, { from: '2026-11-01', to: '2026-11-30' })
    expect(both.by_agent.at(-1)).toMatchObject({ id: null, label: '(others)', requests: labelsMax + 40 })
    expect(both.by_agent.filter(({ label }) => label === '(others)')).toHaveLength(1)
    expect(both.by_agent.find(({ id }) => id === 9)).toMatchObject({ name: 'reader', requests: 1 })
    expect(both.by_agent.reduce((sum, row) => sum + row.cost_uinr, 0)).toBe(both.totals.cost_uinr)
    const sums = new UsageRollups({ db: database.db, clock: movableClock(noon), keepDays: 400, journal: { flushNow: () => Promise.resolve() } })
    await database.db.script("update usage_days_by_agent set requests = requests + 1 where day = '2026-11-03' and agent_label = 'another 1'")
    expect((await sums.rebuild(undefined, undefined)).map(({ day }) => day)).toEqual(['2026-11-03'])
    expect((await reports.report(1, { from: '2026-11-03', to: '2026-11-03' })).by_agent.at(-1)).toMatchObject({ label: '(others)', requests: 20 })
  })

  const countEvents = statement<[], { day: string; count: bigint }>(
    'test.count_events_by_day',
    'select day as "day", count(*) as "count" from usage_events group by day order by day',
  )
  const dayMs = 24 * 3600_000
  const soon = (): AbortSignal => AbortSignal.timeout(60_000)

  it('old events are deleted by month and by row. Their sums stay, and the first kept day never moves back', async () => {
    const { db } = database
    // Creates the partitions of a year, as after a year of operation. Some days are before the first partition.
    for (let month = 0; month < 12; month++) await makePartitions(db, Date.UTC(2025, 11 + month, 15), silentLog)
    const days = ['2025-11-30', '2025-12-15', '2026-08-31', '2026-09-01', '2026-10-11', '2026-10-12', '2026-10-13', '2026-11-21']
    for (const day of days) await put(Date.parse(`${day}T06:30:00Z`), { valueUinr: 5n, costUinr: 5n })
    await put(Date.parse('2026-10-11T18:29:59.999Z'), { valueUinr: 5n, costUinr: 5n })
    const retention = { db, clock: movableClock(noon), log: silentLog, keepDays: 40 }
    // One row of the default partition and two rows of the month at the edge are deleted. Three more rows are dropped with their months.
    expect(await deleteOldUsage(retention, soon())).toBe(3)
    expect(await db.many(countEvents)).toEqual(['2026-10-12', '2026-10-13', '2026-11-21'].map(day => ({ day, count: 1n })))
    expect((await db.many(listPartitions)).map(({ name }) => name)[0]).toBe('usage_events_2026_10')
    expect(await db.one(findKeptFrom)).toEqual({ keptFrom: '2026-10-12' })
    expect((await reports.report(1, { from: '2025-01-01', to: '2026-12-31' })).totals).toMatchObject({ requests: 9, cost_uinr: 45 })
    // The comparison of money with events covers only whole kept months, and debits whose events must exist.
    await db.script(`insert into ledger (org_id, kind, amount_uinr, event_id, at) values
    (1, 'debit', -5, gen_random_uuid(), '2026-10-11T12:00:00Z'), (1, 'debit', -7, gen_random_uuid(), '2026-10-20T12:00:00Z')`)
    expect(new Set((await db.many(violationsOfSpend)).map(({ sum }) => sum))).toEqual(new Set([5n]))
    expect((await db.many(violationsOfDebits)).map(({ debit }) => debit)).toEqual([7n])
    expect(await deleteOldUsage({ ...retention, keepDays: 400 }, soon())).toBe(0)
    expect(await db.one(findKeptFrom)).toEqual({ keptFrom: '2026-10-12' })
    // The sums of days with deleted events are not computed again, and the pages of events do not read these days.
    await db.script("update usage_days set requests = requests + 1; update usage_days_by_key set cost_uinr = 7 where day < '2026-10-12'")
    await put(Date.parse('2026-10-11T06:30:00Z'), { valueUinr: 5n, costUinr: 5n })
    const sums = new UsageRollups({ db, clock: movableClock(noon), keepDays: 400, journal: { flushNow: () => Promise.resolve() } })
    expect((await sums.disagreements(400)).map(({ day }) => day)).toEqual(['2026-10-12', '2026-10-13', '2026-11-21'])
    await expect(sums.rebuild('2026-10-11', undefined)).rejects.toThrow(/begin at 2026-10-12/)
    expect(await sums.rebuild(undefined, undefined)).toHaveLength(3)
    expect((await reports.report(1, { from: '2025-01-01', to: '2026-10-11' })).totals).toMatchObject({ requests: 7 + 5, cost_uinr: 35 })
    const before = db.roundTrips
    const page = await new ActivityEvents({ db, journal: { flushNow: () => Promise.resolve() } }).page(1, undefined, 50, { model: 'm' })
    expect([page.rows.length, db.roundTrips - before]).toEqual([3, 4])
    expect(await deleteOldUsage({ ...retention, clock: movableClock(noon + 90 * dayMs) }, AbortSignal.abort())).toBe(0)
    expect(await db.many(countEvents)).toHaveLength(4)
  })

  it('a month whose first event came before its partition is reported and deleted like every other month', async () => {
    const { db } = database
    const atMs = Date.parse('2027-06-10T06:30:00Z')
    await put(atMs, {})
    await makePartitions(db, atMs, silentLog)
    const names = (await db.many(listPartitions)).map(({ name }) => name)
    expect(names).not.toContain('usage_events_2027_06')
    expect(names).toContain('usage_events_2027_09')
    expect((await reports.report(1, { from: '2027-06-10', to: '2027-06-10' })).totals.requests).toBe(1)
    expect(await deleteOldUsage({ db, clock: movableClock(atMs + 60 * dayMs), log: silentLog, keepDays: 40 }, soon())).toBe(1)
  })
})
