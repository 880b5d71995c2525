import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { checkInvariants } from '../../../src/gateway/limits/invariants.ts'
import { statement } from '../../../src/platform/db/db.ts'
import { type TestDatabase, testDatabase } from '../../harness/database.ts'
import { caller, callOnce, outcomeOf, request, startEngine, type TestEngine } from './engine.ts'

const leased = statement<[], { counterId: bigint; amount: bigint }>(
  'test.failover_leases',
  `select counter_id as "counterId", amount as "amount" from leases where amount > 0 order by counter_id`,
)
const spentOf = statement<[orgId: number], { scope: string; spent: bigint }>(
  'test.failover_spent',
  `select scope as "scope", spent as "spent" from counters where org_id = $1::int and metric = 'spend' and spent > 0 order by scope`,
)
/** SQL that copies the tables of amounts, to restore them later as a database that has lost its last commits. */
const take = `
  create table copy_counters as select * from counters;
  create table copy_leases as select * from leases;
  create table copy_events as select * from usage_events;
  create table copy_beats as select * from beats;`
const restore = `
  begin;
  delete from leases; delete from usage_events;
  delete from counters where id not in (select id from copy_counters);
  update counters c set spent = k.spent, leased = k.leased from copy_counters k where k.id = c.id;
  insert into leases select * from copy_leases;
  insert into usage_events select * from copy_events;
  update beats b set flush_to = coalesce((select k.flush_to from copy_beats k where k.process_id = b.process_id), 0);
  commit;`

describe.each([
  ['this thread', false],
  ['a thread of its own', true],
] as const)('when %s flushes', (_, flushThread) => {
  let database: TestDatabase
  let engine: TestEngine
  beforeEach(async () => {
    database = await testDatabase()
    engine = await startEngine(database.db, { flushThread, env: { JOURNAL_FLUSH_MS: '3600000', BEAT_MS: '3600000', JANITOR_MS: '3600000' } })
  })
  afterEach(async () => {
    await engine.stop()
    expect(await checkInvariants(database.db)).toEqual([])
    expect(await database.db.many(leased)).toEqual([])
    await database.dispose()
  })
  const asking = (keyId: number) => request(1000n, { principal: caller({ keyId, orgId: keyId, userId: null }) })
  const call = (keyId: number) => outcomeOf(callOnce(engine, asking(keyId), 700n))
  const setBudget = (keyId: number, cap: bigint) => engine.limits.budgets.set(keyId, 'key', String(keyId), cap)
  const spent = async (keyId: number) => (await database.db.many(spentOf, keyId)).map(row => `${row.scope} ${row.spent}`)

  it('after a database failover, the next beat writes lost records again, also in a process without new records', async () => {
    await setBudget(7, 1_000_000n)
    for (let i = 0; i < 3; i++) expect(await call(7)).toBe('ok')
    await engine.limits.flushNow()
    await database.db.script(take)
    const running = await engine.limits.admit(asking(7))
    for (let i = 0; i < 4; i++) expect(await call(7)).toBe('ok')
    await engine.limits.flushNow()
    await database.db.script(restore)
    expect(await spent(7)).toEqual(['key 2100', 'org 2100'])
    await engine.limits.beat()
    expect(await spent(7)).toEqual(['key 4900', 'org 4900'])
    expect([...engine.limits.ownLeases]).toEqual((await database.db.many(leased)).map(row => [row.counterId, row.amount]))
    running.release()
    expect(await call(7)).toBe('ok')
  })

  it('counters that a failover lost are made again, and no other row that has taken their id is changed', async () => {
    await database.db.script(take)
    await setBudget(8, 1_000_000n)
    for (let i = 0; i < 3; i++) expect(await call(8)).toBe('ok')
    await engine.limits.flushNow()
    const [{ id } = { id: 0n }] = [...engine.limits.ownLeases.keys()].map(key => ({ id: key }))
    await database.db.script(restore)
    await database.db.script(`insert into counters (id, org_id, scope, scope_id, metric, period) overriding system value
      values (${id}, 99, 'key', '99', 'spend', '2030-01')`)
    await engine.limits.beat()
    expect(await spent(8)).toEqual(['key 2100', 'org 2100'])
    expect(await spent(99)).toEqual([])
    await setBudget(8, 4000n)
    for (let i = 0; i < 3; i++) expect(await call(8)).toBe('ok')
    // The budget applies as before, with its own row.
    expect(await call(8)).toBe('budget_exceeded')
    await engine.limits.flushNow()
    expect(await spent(8)).toEqual(['key 4200', 'org 4200'])
    expect(await spent(99)).toEqual([])
    for (const { counterId } of await database.db.many(leased)) expect(counterId).not.toBe(id)
  })

  it('a process whose own records were not lost notices that counters of other processes are missing', async () => {
    expect(await call(9)).toBe('ok')
    await engine.limits.flushNow()
    await database.db.script(`delete from counters where org_id = 9; delete from usage_events where org_id = 9`)
    await setBudget(9, 1_000_000n)
    for (let i = 0; i < 2; i++) expect(await call(9)).toBe('ok')
    await engine.limits.flushNow()
    expect(await spent(9)).toEqual(['key 1400', 'org 1400'])
  })
})
