import { afterEach, beforeEach, expect, it } from 'vitest'
import { insertUsageEvents } from '../../../src/gateway/usage/apply.ts'
import { csvLine } from '../../../src/gateway/usage/csv.ts'
import { makePartitions } from '../../../src/gateway/usage/partitions.ts'
import type { UsageEvent } from '../../../src/gateway/usage/record.ts'
import { UsageReports } from '../../../src/gateway/usage/reports.ts'
import { silentLog } from '../../../src/platform/log.ts'
import { type TestDatabase, testDatabase } from '../../harness/database.ts'
import { eventOf, movableClock, request } from '../limits/engine.ts'

const noon = Date.parse('2026-11-21T06:30:00Z')
let database: TestDatabase
let reports: UsageReports

const put = async (atMs: number, over: Partial<UsageEvent>): Promise<void> => {
  const event = eventOf(request(1n, {}, atMs), 0n, over)
  expect(await database.db.tx(tx => insertUsageEvents(tx, [event]))).toEqual([event.id])
  expect(await database.db.tx(tx => insertUsageEvents(tx, [event]))).toEqual([])
}

beforeEach(async () => {
  database = await testDatabase()
  await makePartitions(database.db, noon, silentLog)
  await makePartitions(database.db, noon, silentLog)
  reports = new UsageReports({
    db: database.db,
    clock: movableClock(noon),
    flushNow: () => Promise.resolve(),
    agentNames: () => Promise.resolve(new Map([[9, 'reader']])),
  })
})
afterEach(() => database.dispose())

it('sums up by model and agent; days are those of IST, both ends included', async () => {
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
  expect(await reports.csv(1, report)).toContain('2026-11-20,a,p,1,3,4,7,0,1.5,0,0,0\r\n')
  expect((await reports.report(2, report)).totals.requests).toBe(0)
})

it('takes the month to date when nothing is said, and refuses what is no span of days', () => {
  expect(reports.span(undefined, undefined)).toEqual({ from: '2026-11-01', to: '2026-11-21' })
  for (const [from, to] of [
    ['2026-02-30', undefined],
    ['x', undefined],
    ['2026-11-02', '2026-11-01'],
  ] as const)
    expect(() => reports.span(from, to)).toThrow(/calendar day|after/)
})

it('quotes CSV and disarms formulas', () => {
  expect(csvLine(['=1+1', 'a,b', 'say "x"', 5, -3])).toBe(`'=1+1,"a,b","say ""x""",5,-3\r\n`)
})
