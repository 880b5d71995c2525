import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { scopes } from '../../src/gateway/limits/engine/counters/counter-state.ts'
import { checkInvariants } from '../../src/gateway/limits/invariants.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { statement } from '../../src/platform/db/db.ts'
import { startEngine, type TestEngine } from '../gateway/limits/engine.ts'
import { onPostgres, type TestDatabase, testDatabase } from '../harness/database.ts'
import { until } from '../harness/until.ts'
import { compileDriver, type Driver, startDriver } from '../platform/compiled-driver.ts'
import { randomFrom } from './plan.ts'
import { soakCall, soakScopes } from './soak-load.ts'

const seed = Number(process.env['CHAOS_SEED'] ?? 1)
const soakMs = Number(process.env['CHAOS_SOAK_SECONDS'] ?? 60) * 1000

const deadlocks = statement<[], { deadlocks: bigint; commits: bigint }>(
  'test.soak_deadlocks',
  `select deadlocks as "deadlocks", xact_commit as "commits" from pg_stat_database where datname = current_database()`,
)
const unsettled = statement<[], { processes: number; leased: bigint }>(
  'test.soak_unsettled',
  `select (select count(*)::int from processes where state in ('live', 'closing', 'lost')) as "processes",
     (select coalesce(sum(amount), 0)::bigint from leases) as "leased"`,
)

describe.runIf(onPostgres)('a minute of everything together', () => {
  let database: TestDatabase
  let folder: string
  beforeAll(async () => {
    database = await testDatabase()
    folder = mkdtempSync(join(tmpdir(), 'brigade-soak-'))
  })
  afterAll(async () => {
    await database?.dispose()
    rmSync(folder, { recursive: true, force: true })
  })

  test('no transaction ever waits in a circle, and everything adds up', { timeout: soakMs + 120_000 }, async () => {
    const random = randomFrom(seed)
    const below = (limit: number): number => Math.floor(random() * limit)
    const driver = compileDriver('test/chaos/soak-driver')
    const engines: TestEngine[] = []
    for (const seconds of ['0', '10'])
      engines.push(await startEngine(await database.open(), { dataDir: folder, env: { ALLOWANCE_SECONDS: seconds, JANITOR_MS: '200' } }))
    const endMs = systemClock.monotonicMs() + soakMs
    const goesOn = (): boolean => systemClock.monotonicMs() < endMs
    let calls = 0
    let kills = 0
    let changes = 0
    const lane = async (engine: TestEngine): Promise<void> => {
      while (goesOn()) {
        await soakCall(engine, random)
        calls++
      }
    }
    const owner = async (engine: TestEngine): Promise<void> => {
      const limits = { org: 1, team: 1, workspace: soakScopes.workspaces, member: soakScopes.users, key: soakScopes.keys, agent: soakScopes.agents }
      while (goesOn()) {
        const scope = scopes[below(scopes.length)] ?? 'org'
        const cap = random() < 0.2 ? null : BigInt(1 + below(5_000_000))
        await engine.limits.budgets.set(soakScopes.orgId, scope, String(1 + below(limits[scope])), cap, { strict: random() < 0.3 })
        changes++
        await systemClock.sleep(10)
      }
    }
    const reaper = async (): Promise<void> => {
      let victims: Driver[] = []
      while (goesOn()) {
        victims = [0, 1].map(i => startDriver(driver, [database.url ?? '', folder, String(seed + kills * 2 + i)]))
        await until(() => victims.every(victim => victim.lines().length > 0), 'the drivers start', 30_000)
        await systemClock.sleep(500 + below(1000))
        await Promise.all(victims.map(victim => victim.kill()))
        kills += victims.length
      }
    }
    await Promise.all([...engines.flatMap(engine => [lane(engine), lane(engine), lane(engine), owner(engine)]), reaper()])
    for (const engine of engines) await engine.limits.janitor.runOnce()
    await until(async () => (await database.db.one(unsettled)).processes === engines.length, 'every dead process is closed', 30_000)
    for (const engine of engines) await engine.stop()
    expect(await checkInvariants(database.db)).toEqual([])
    expect(await database.db.one(unsettled)).toEqual({ processes: 0, leased: 0n })
    // Statistics reach the view when a session has been idle for a second.
    await systemClock.sleep(2500)
    const stats = await database.db.one(deadlocks)
    process.stdout.write(
      `soak: seed ${seed}, ${calls} calls here, ${changes} changed caps, ${kills} killed processes, ${stats.commits} commits, ${stats.deadlocks} deadlocks\n`,
    )
    expect(kills).toBeGreaterThan(0)
    expect(stats.deadlocks).toBe(0n)
  })
})
