import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { BudgetZoneSetting } from '../../../../src/gateway/limits/budgets/periods/budget-zone.ts'
import type { AdmissionRequest } from '../../../../src/gateway/limits/engine/admission.ts'
import { checkInvariants } from '../../../../src/gateway/limits/invariants.ts'
import { systemClock } from '../../../../src/platform/clock.ts'
import { statement } from '../../../../src/platform/db/db.ts'
import { ControlLog } from '../../../../src/platform/db/db-control-log.ts'
import { silentLog } from '../../../../src/platform/observe/log.ts'
import { onPostgres, type TestDatabase, testDatabase } from '../../../harness/database.ts'
import { until } from '../../../harness/until.ts'
import { callOnce, eventOf, movableClock, outcomeOf, request, startEngine, type TestEngine } from '../engine.ts'

const counters = statement<[], { metric: string; period: string; spent: bigint; leased: bigint }>(
  'test.period_counters',
  `select metric as "metric", period as "period", spent as "spent", leased as "leased" from counters where scope = 'org' and spent > 0 order by period`,
)
const marks = statement<[], { threshold: string; period: string; count: number }>(
  'test.period_marks',
  `select data->>'threshold' as "threshold", data->>'resets_at' as "period", count(*)::int as "count" from webhook_events
   where type in ('budget.warn', 'budget.block') group by 1, 2 order by 2, (data->>'threshold')::int`,
)

const cost = 1000n
const times = (count: number): number[] => Array.from({ length: count }, (_, i) => i)

/** 30 s before Monday 30 November 2026 in India. */
const beforeMonday = Date.parse('2026-11-29T18:29:30Z')

describe.runIf(onPostgres)('periods of budgets over several processes', () => {
  const clock = movableClock(beforeMonday)
  let database: TestDatabase
  let engines: TestEngine[]
  beforeEach(async () => {
    clock.moveTo(beforeMonday)
    database = await testDatabase()
    engines = []
    for (let i = 0; i < 3; i++) engines.push(await startEngine(await database.open(), { clock, env: { BEAT_MS: '200', RECALL_WAIT_MS: '1000' } }))
    for (const engine of engines) await engine.limits.beat()
  })
  afterEach(async () => {
    for (const engine of engines) await engine.stop()
    expect(await checkInvariants(database.db)).toEqual([])
    await database.dispose()
  })
  const on = (i: number): TestEngine => engines[i % engines.length] as TestEngine
  const asked = (): AdmissionRequest => request(cost, {}, clock.nowMs())
  const set = async (period: 'day' | 'week' | 'ever', calls: number, warnPercent?: readonly number[]): Promise<void> => {
    await on(0).limits.budgets.set(1, 'org', '1', BigInt(calls) * cost, { period, ...(warnPercent === undefined ? {} : { warnPercent }) })
    const told = on(0).heard(1)
    await until(() => engines.every(engine => engine.heard(1) >= told), 'every process knows the budget')
  }
  const admitted = async (from: number, count: number): Promise<number> =>
    (await Promise.all(times(count).map(i => outcomeOf(callOnce(on(from + i), asked(), cost))))).filter(outcome => outcome === 'ok').length
  /** Makes calls one after the other, each in the next process, until this number was admitted. A rest that another process holds comes back in a moment. */
  const spend = async (count: number): Promise<void> => {
    let done = 0
    await until(async () => {
      if ((await outcomeOf(callOnce(on(done), asked(), cost))) === 'ok') done++
      return done === count
    }, `${count} calls are admitted`)
  }
  /** Makes calls until the budget is spent. Returns the number of admitted ones. */
  const spendAll = async (engineOf: (i: number) => TestEngine): Promise<number> => {
    let done = 0
    await until(async () => {
      const outcome = await outcomeOf(callOnce(engineOf(done), asked(), cost))
      if (outcome === 'ok') done++
      else await settled()
      return outcome === 'budget_exceeded'
    }, 'the budget is spent')
    return done
  }
  const settled = async (): Promise<void> => {
    for (const engine of engines) await engine.limits.flushNow()
  }

  it('processes together never admit more than the shortest budget pays for, and one alone admits exactly that', async () => {
    await set('week', 12)
    await set('day', 10)
    expect(await admitted(0, 100)).toBeLessThanOrEqual(10)
    clock.moveTo(beforeMonday + 60_000)
    for (const i of times(3)) await callOnce(on(i), asked(), cost)
    // Two processes have leases that they do not use.
    expect(await spendAll(() => on(0))).toBe(7)
    await settled()
    for (const { metric, period, spent } of await database.db.many(counters)) if (metric === 'budget' && period === '2026-11-30') expect(spent).toBe(10n * cost)
  })

  it('each mark fires once in a period, whichever process settles the calls that cross it', async () => {
    await set('day', 20, [25, 50, 75])
    expect(await admitted(0, 60)).toBeGreaterThan(0)
    await settled()
    await spendAll(on)
    await settled()
    const fired = await database.db.many(marks)
    expect(fired.map(({ threshold, count }) => `${threshold} ${count}`)).toEqual(['25 1', '50 1', '75 1', '80 1', '100 1'])
    clock.moveTo(beforeMonday + 60_000)
    await spend(12)
    await settled()
    expect((await database.db.many(marks)).slice(5).map(({ threshold, count }) => `${threshold} ${count}`)).toEqual(['25 1', '50 1'])
  })

  it('calls that run while a period turns count once, in the period of their admission', async () => {
    await set('ever', 100)
    await set('day', 100)
    const running = await Promise.all(
      times(6).map(async i => {
        const call = asked()
        return { call, permit: await on(i).limits.admit(call) }
      }),
    )
    clock.moveTo(beforeMonday + 60_000)
    await spend(3)
    for (const { call, permit } of running) {
      const atMs = permit.admittedAtMs
      await permit.open(eventOf(call, 0n, { atMs }))
      await permit.settle(eventOf(call, cost, { atMs }))
    }
    await settled()
    const rows = (await database.db.many(counters)).map(({ period, spent }) => [period, spent])
    expect(rows).toEqual([
      ['2026-11', 9n * cost],
      ['2026-11-29', 6n * cost],
      ['2026-11-30', 3n * cost],
      ['ever', 9n * cost],
    ])
  })

  it('a changed time zone reaches every process, and all of them use the same windows', async () => {
    await set('day', 10)
    const controlLog = new ControlLog({ db: database.db, clock: systemClock, log: silentLog, pollMs: 1000 })
    clock.moveTo(Date.parse('2026-11-29T06:00:00Z'))
    const before = engines.map(engine => engine.heard(1))
    await new BudgetZoneSetting({ db: database.db, controlLog, nowMs: () => clock.nowMs() }).set(1, 'Europe/Berlin')
    await spend(3)
    clock.moveTo(Date.parse('2026-11-29T18:30:00Z'))
    await until(() => engines.every((engine, i) => engine.heard(1) > (before[i] ?? 0n)), 'every process knows the zone')
    await spend(3)
    await settled()
    expect((await database.db.many(counters)).filter(({ metric }) => metric === 'budget').map(({ period, spent }) => [period, spent])).toEqual([
      ['2026-11-29', 3n * cost],
      ['2026-11-29@Europe/Berlin', 3n * cost],
    ])
  })
})
