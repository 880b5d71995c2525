import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { checkInvariants } from '../../../src/gateway/limits/invariants.ts'
import { type Clock, systemClock } from '../../../src/platform/clock.ts'
import { statement } from '../../../src/platform/db/db.ts'
import { until } from '../../harness/app.ts'
import { onPostgres, type TestDatabase, testDatabase } from '../../harness/database.ts'
import { caller, callOnce, eventOf, outcomeOf, request, startEngine, type TestEngine } from './engine.ts'

const spend = statement<[], { scope: string; period: string; cap: bigint | null; spent: bigint }>(
  'test.clock_spend',
  `select scope as "scope", period as "period", cap as "cap", spent as "spent" from counters where metric in ('spend', 'daily') and scope = 'key' order by period`,
)
const clockNow = statement<[], { nowMs: number }>('test.clock_now', `select (extract(epoch from clock_timestamp()) * 1000)::float8 as "nowMs"`)
const cost = 100n
/** The time before midnight at which the processes start. A slow machine needs some of it to start them. */
const leadMs = 4000

/** The clock of a machine whose time is wrong by a settable amount. */
interface SkewedClock extends Clock {
  skewMs: number
}
function skewedClock(skewMs: number): SkewedClock {
  return {
    ...systemClock,
    skewMs,
    nowMs() {
      return Date.now() + this.skewMs
    },
  }
}

describe.runIf(onPostgres)('clocks of three processes', () => {
  let database: TestDatabase
  let engines: TestEngine[] = []
  beforeEach(async () => {
    database = await testDatabase()
    engines = []
  })
  afterEach(async () => {
    for (const engine of engines) await engine.stop()
    expect(await checkInvariants(database.db)).toEqual([])
    await database.dispose()
  })

  /** Sets the clock of the database, with functions in a schema that is searched before the built-in one. */
  async function setDatabaseClock(atMs: number): Promise<void> {
    const { pathname } = new URL(database.url ?? '')
    const aheadMs = atMs - Date.now()
    await database.db.script(`
      create schema if not exists other_time;
      create or replace function other_time.clock_timestamp() returns timestamptz language sql volatile as
        $$ select pg_catalog.clock_timestamp() + ${aheadMs} * interval '1 millisecond' $$;
      alter database "${pathname.slice(1)}" set search_path = other_time, pg_catalog, public;`)
  }
  const startEngines = async (clocks: readonly Clock[], env: Record<string, string> = {}): Promise<TestEngine[]> => {
    for (const clock of clocks)
      engines.push(await startEngine(await database.open(), { clock, followDatabaseClock: true, env: { BEAT_MS: '100', RECALL_WAIT_MS: '400', ...env } }))
    for (const engine of engines) await engine.limits.beat()
    return engines
  }

  it.each([
    ['midnight in India', Date.parse('2026-11-21T18:30:00Z')],
    ['the end of a month in India', Date.parse('2026-11-30T18:30:00Z')],
  ])(
    'processes whose clocks differ by five seconds at %s admit no more than the caps of both periods, and change the period together',
    async (_, midnightMs) => {
      const isMonth = new Date(midnightMs).getUTCDate() === 30
      await setDatabaseClock(midnightMs - leadMs)
      await startEngines([skewedClock(-5000), skewedClock(0), skewedClock(5000)])
      const budget = 30n * cost
      const dailyLimit = 25
      await engines[0]?.limits.budgets.set(1, 'key', '7', isMonth ? budget : null)
      const principal = caller({ limits: { rpmLimit: null, dailyLimit: isMonth ? null : dailyLimit } })
      const db = await database.open()
      const nowMs = async (): Promise<number> => (await db.one(clockNow)).nowMs
      /**
       * Makes one call. Its period must follow the database's clock, even if the machine's clock is wrong. The tolerance is less than the error of the
       * machine's clock.
       */
      const call = async (engine: TestEngine): Promise<string> => {
        const asked = request(cost, { principal })
        const beforeMs = await nowMs()
        const outcome = await outcomeOf(
          Promise.resolve(engine.limits.admit(asked)).then(async permit => {
            expect(permit.admittedAtMs).toBeGreaterThan(beforeMs - 2000)
            expect(permit.admittedAtMs).toBeLessThan((await nowMs()) + 2000)
            const atMs = permit.admittedAtMs
            void permit.open(eventOf(asked, 0n, { atMs }))
            await permit.settle(eventOf(asked, cost, { atMs }))
            if (permit.admittedAtMs < midnightMs) servedBefore++
            else servedAfter++
          }),
        )
        expect(['ok', 'budget_held', 'budget_exceeded', 'daily_limit_reached']).toContain(outcome)
        return outcome
      }
      let servedBefore = 0
      let servedAfter = 0
      while ((await nowMs()) < midnightMs + 1000) await Promise.all(engines.map(call))
      const end = isMonth ? 'budget_exceeded' : 'daily_limit_reached'
      for (const engine of engines) await until(async () => (await call(engine)) === end)
      for (const engine of engines) await engine.limits.flushNow()
      const most = isMonth ? Number(budget / cost) : dailyLimit
      const ofLimit = (await database.db.many(spend)).filter(row => row.period.length === (isMonth ? 7 : 10))
      const counted = ofLimit.map(row => Number(isMonth ? row.spent / cost : row.spent))
      // A period without a call has no row.
      if (servedBefore === 0) counted.unshift(0)
      expect(counted).toEqual([servedBefore, servedAfter])
      expect(servedBefore).toBeLessThanOrEqual(most)
      expect(servedAfter).toBe(most)
    },
  )

  it('when clocks jump ten minutes forward and back, even past the offline limit, no more than the cap is admitted', async () => {
    const clocks = [skewedClock(0), skewedClock(0), skewedClock(0)]
    await startEngines(clocks, { OFFLINE_MAX_MS: '120000' })
    const calls = 120
    await engines[0]?.limits.budgets.set(1, 'org', '1', BigInt(calls) * cost)
    let served = 0
    const held = await Promise.all(engines.map(engine => engine.limits.admit(request(cost))))
    for (let round = 0; served < calls - held.length; round++) {
      const clock = clocks[round % 3]
      if (round % 10 === 0 && clock !== undefined) clock.skewMs = [600_000, -600_000, 0][(round / 10) % 3] ?? 0
      const outcome = await outcomeOf(callOnce(engines[round % 3] as TestEngine, request(cost), cost))
      if (outcome === 'ok') served++
      else expect(['budget_held', 'budget_exceeded']).toContain(outcome)
      expect(round).toBeLessThan(5000)
    }
    for (const engine of engines) expect(await outcomeOf(callOnce(engine, request(cost), cost))).toBe('budget_held')
    for (const permit of held) permit.release()
    for (const engine of engines) await engine.limits.flushNow()
    while (served < calls) {
      const outcome = await outcomeOf(callOnce(engines[served % 3] as TestEngine, request(cost), cost))
      if (outcome === 'ok') served++
    }
    await until(async () => (await outcomeOf(callOnce(engines[0] as TestEngine, request(cost), cost))) === 'budget_exceeded')
    for (const engine of engines) await engine.limits.flushNow()
    expect(await engines[0]?.limits.budgets.get(1, 'org', '1')).toMatchObject({ spentUinr: BigInt(calls) * cost })
  })
})
