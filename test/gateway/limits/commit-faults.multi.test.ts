import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { checkInvariants } from '../../../src/gateway/limits/invariants.ts'
import { systemClock } from '../../../src/platform/clock.ts'
import { type Db, statement } from '../../../src/platform/db/db.ts'
import { openPostgres } from '../../../src/platform/db/postgres/db-postgres.ts'
import { silentLog } from '../../../src/platform/observe/log.ts'
import { Secret } from '../../../src/platform/security/secret.ts'
import { until } from '../../harness/app.ts'
import { onPostgres, type TestDatabase, testDatabase } from '../../harness/database.ts'
import { type Passage, startTcpProxy, type TcpProxy } from '../../harness/tcp-proxy.ts'
import { caller, callOnce, outcomeOf, request, startEngine, type TestEngine } from './engine.ts'

const leased = statement<[], { sum: bigint; counters: bigint }>(
  'test.leased_of_all',
  `select (select coalesce(sum(amount), 0)::bigint from leases) as "sum", (select coalesce(sum(leased), 0)::bigint from counters) as "counters"`,
)
const eventCount = statement<[], { count: number; value: bigint }>(
  'test.event_count',
  `select count(*)::int as "count", coalesce(sum(value_uinr), 0)::bigint as "value" from usage_events`,
)
const killWriters = statement<[], { count: number }>(
  'test.kill_writers',
  `select count(pg_terminate_backend(pid))::int as "count" from pg_stat_activity
   where datname = current_database() and pid <> pg_backend_pid() and state = 'idle in transaction'`,
)
const cost = 1000n
/** What happens to a commit: it never arrives ('cut'), its reply is lost ('deafen'), or the server process ends before it ('terminate'). */
type Fault = 'cut' | 'deafen' | 'terminate'

describe.runIf(onPostgres)('a connection that breaks at the moment of a commit', () => {
  let database: TestDatabase
  let proxy: TcpProxy
  let db: Db
  let engine: TestEngine
  beforeAll(async () => {
    database = await testDatabase()
    const target = new URL(database.url ?? '')
    proxy = await startTcpProxy({ host: target.hostname, port: Number(target.port) })
    target.host = `127.0.0.1:${proxy.port}`
    db = await openPostgres(new Secret(target.href), { poolMax: 4, clock: systemClock, log: silentLog })
  })
  afterAll(async () => {
    await db?.close()
    await proxy?.close()
    await database?.dispose()
  })
  beforeEach(async () => {
    engine = await startEngine(db, { env: { BEAT_MS: '50', JANITOR_MS: '3600000' } })
  })
  afterEach(async () => {
    proxy.watch(null)
    await until(() => flushed())
    await engine.stop()
    expect(await checkInvariants(database.db)).toEqual([])
    expect(await database.db.one(leased)).toEqual({ sum: 0n, counters: 0n })
  })

  const flushed = (): Promise<boolean> =>
    engine.limits.flushNow().then(
      () => true,
      () => false,
    )
  /** Breaks the connection at the next message with this text. The returned function says whether there was one. */
  function breakNext(text: string, fault: Fault): () => boolean {
    let isDone = false
    proxy.watch((bytes): Passage | Promise<Passage> => {
      if (isDone || !bytes.includes(text)) return 'pass'
      isDone = true
      if (fault !== 'terminate') return fault
      return database.db.one(killWriters).then(({ count }) => {
        expect(count).toBeGreaterThan(0)
        return 'pass'
      })
    })
    return () => isDone
  }
  let nextKeyId = 7000
  const newBudget = async (calls: number) => {
    const keyId = nextKeyId++
    const principal = caller({ keyId, orgId: keyId, userId: null })
    await database.db.exec(setBudget, keyId, BigInt(calls) * cost)
    const call = () => outcomeOf(callOnce(engine, request(cost, { principal }), cost))
    const stands = () => engine.limits.budgets.get(keyId, 'key', String(keyId))
    return { call, stands, principal }
  }
  const setBudget = statement<[keyId: number, cap: bigint]>(
    'test.set_key_budget',
    `insert into budgets (org_id, scope, scope_id, cap_uinr) values ($1::int, 'key', $1::int::text, $2::bigint)`,
  )

  it.each(['cut', 'deafen'] as const)('a lease request with an unknown outcome (%s) loses nothing and grants nothing twice', async fault => {
    const { call, stands } = await newBudget(60)
    let served = 0
    let broken = 0
    for (let round = 0; served < 60; round++) {
      const wasBroken = round % 3 === 0 && served < 50 ? breakNext('limits.acquire', fault) : () => false
      const outcome = await call()
      if (outcome === 'ok') served++
      else expect(['database_unavailable', 'budget_held']).toContain(outcome)
      // The next beat finds the amount of a grant whose reply was lost.
      if (outcome === 'budget_held') await engine.limits.beat()
      if (wasBroken()) broken++
      proxy.watch(null)
      expect(round).toBeLessThan(2000)
    }
    // Grants whose replies were lost were found again, so the whole budget was spent and not one call more.
    expect(broken).toBeGreaterThan(0)
    await until(async () => (await call()) === 'budget_exceeded')
    expect(await stands()).toMatchObject({ spentUinr: 60n * cost, heldUinr: 0n })
  })

  it.each(['cut', 'deafen'] as const)('a lease request that broke (%s) just before the end of the process leaves no lease', async fault => {
    const { call } = await newBudget(60)
    breakNext('limits.acquire', fault)
    expect(await call()).toBe('database_unavailable')
    proxy.watch(null)
  })

  it.each(['cut', 'deafen', 'terminate'] as const)('a flush whose commit broke (%s) is counted once', async fault => {
    const { call, stands } = await newBudget(1000)
    const before = await database.db.one(eventCount)
    for (let round = 0; round < 12; round++) {
      const wasBroken = breakNext('commit\0', fault)
      for (let i = 0; i <= round % 3; i++) expect(await call()).toBe('ok')
      await until(async () => wasBroken() || !(await flushed()))
      proxy.watch(null)
      await until(() => flushed())
    }
    const after = await database.db.one(eventCount)
    expect(after.count - before.count).toBe(24)
    expect(await stands()).toMatchObject({ spentUinr: 24n * cost })
    await until(async () => (await stands()).spentUinr === 24n * cost)
  })
})
