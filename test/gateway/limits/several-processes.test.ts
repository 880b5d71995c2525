import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { checkInvariants } from '../../../src/gateway/limits/invariants.ts'
import { statement } from '../../../src/platform/db/db.ts'
import { onPostgres, type TestDatabase, testDatabase } from '../../harness/database.ts'
import { compileDriver } from '../../platform/compiled-driver.ts'
import { caller, callOnce, outcomeOf, request, startEngine, type TestEngine } from './engine.ts'

const held = statement<[], { leased: bigint; spent: bigint; value: bigint; events: number }>(
  'test.held',
  `select (select coalesce(sum(leased), 0)::bigint from counters where metric = 'spend') as "leased",
     (select coalesce(sum(spent), 0)::bigint from counters where metric = 'spend' and scope = 'org') as "spent",
     (select coalesce(sum(value_uinr), 0)::bigint from usage_events) as "value", (select count(*)::int from usage_events) as "events"`,
)

describe.runIf(onPostgres)('several processes on one database', () => {
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
  const startThree = async (): Promise<TestEngine[]> => {
    for (let i = 0; i < 3; i++) engines.push(await startEngine(await database.open(), { env: { BEAT_MS: '200' } }))
    for (const engine of engines) await engine.limits.beat()
    return engines
  }

  it('one process admits exactly ten calls while other processes have unused leases', async () => {
    const [first, second, third] = (await startThree()) as [TestEngine, TestEngine, TestEngine]
    await first.limits.budgets.set(1, 'org', '1', 12_000n)
    await callOnce(second, request(1000n), 1000n)
    await callOnce(third, request(1000n), 1000n)
    const outcomes = await Promise.all(Array.from({ length: 200 }, () => outcomeOf(callOnce(first, request(1000n), 1000n))))
    expect(outcomes.filter(outcome => outcome === 'ok')).toHaveLength(10)
  })

  it('several processes together admit at most ten calls', async () => {
    const three = await startThree()
    await three[0]?.limits.budgets.set(1, 'org', '1', 10_000n)
    const outcomes = await Promise.all(Array.from({ length: 200 }, (_, i) => outcomeOf(callOnce(three[i % 3] as TestEngine, request(1000n), 1000n))))
    const admitted = outcomes.filter(outcome => outcome === 'ok').length
    expect(admitted).toBeLessThanOrEqual(10)
    expect(admitted).toBeGreaterThanOrEqual(9)
  })

  it('with a limit of three a minute, exactly three calls are admitted, for any distribution over processes', async () => {
    const three = await startThree()
    const principal = caller({ limits: { rpmLimit: 3, dailyLimit: null } })
    // All calls must be in one clock minute, so the test may have to wait for the next one.
    await expect.poll(() => new Date().getSeconds(), { timeout: 15_000 }).toBeLessThan(50)
    const outcomes = await Promise.all(Array.from({ length: 30 }, (_, i) => outcomeOf((three[i % 3] as TestEngine).limits.takeRate(principal))))
    expect(outcomes.filter(outcome => outcome === 'ok')).toHaveLength(3)
  })

  it('after one of three processes is killed, no charge is lost and no hold remains', async () => {
    const driver = compileDriver('test/gateway/limits/driver')
    const dataDir = mkdtempSync(join(tmpdir(), 'brigade-killed-'))
    const children: ChildProcess[] = []
    const settled = new Set<string>()
    for (let i = 0; i < 3; i++) {
      const child = spawn(process.execPath, [driver, database.url ?? '', dataDir], { stdio: ['ignore', 'pipe', 'inherit'] })
      let text = ''
      child.stdout.on('data', (chunk: Buffer) => {
        text += chunk.toString()
        const lines = text.split('\n')
        text = lines.pop() ?? ''
        for (const line of lines) settled.add(line)
      })
      children.push(child)
    }
    await expect.poll(() => settled.size, { timeout: 20_000 }).toBeGreaterThan(1500)
    children[0]?.kill('SIGKILL')
    const before = settled.size
    await expect.poll(() => settled.size, { timeout: 20_000 }).toBeGreaterThan(before + 500)
    for (const child of children.slice(1)) child.kill('SIGTERM')
    await Promise.all(children.slice(1).map(child => new Promise(resolve => (child.exitCode === null ? child.once('exit', resolve) : resolve(null)))))
    // Another process on the same folder adopts the journal of the killed one.
    const survivor = await startEngine(database.db, { dataDir })
    await survivor.stop()
    const state = await database.db.one(held)
    expect(state.leased).toBe(0n)
    expect(state.spent).toBe(state.value)
    expect(state.events).toBeGreaterThanOrEqual(settled.size)
  }, 60_000)
})
