import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { checkInvariants } from '../../../src/gateway/limits/invariants.ts'
import { systemClock } from '../../../src/platform/clock.ts'
import { statement } from '../../../src/platform/db/db.ts'
import { until } from '../../harness/app.ts'
import { onPostgres, type TestDatabase, testDatabase } from '../../harness/database.ts'
import { caller, callOnce, eventOf, outcomeOf, request, startEngine, type TestEngine } from './engine.ts'

const counterOf = statement<[keyId: string], { spent: bigint; leased: bigint }>(
  'test.leased_counter',
  `select spent as "spent", leased as "leased" from counters where scope = 'key' and scope_id = $1::text and metric = 'spend'`,
)
/** Writes a change of a cap without a notification, as when the notification is lost on the way to other processes. */
const capUnheard = statement<[keyId: number, cap: bigint], { seq: bigint }>(
  'test.cap_unheard',
  `with request as (update budgets set cap_uinr = $2::bigint where org_id = $1::int and scope = 'key' and scope_id = $1::int::text),
     copy as (update counters set cap = $2::bigint where org_id = $1::int and scope = 'key' and scope_id = $1::int::text and metric = 'spend')
   insert into control_log (kind, ref) values ('cap_changed', $1::int || ':key:' || $1::int) returning seq`,
)
const cost = 1000n
const times = (count: number): number[] => Array.from({ length: count }, (_, i) => i)

describe.runIf(onPostgres)('caps that change while three processes hold slices', () => {
  let database: TestDatabase
  const engines: TestEngine[] = []
  beforeAll(async () => {
    database = await testDatabase()
    for (const _ of times(3)) engines.push(await startEngine(await database.open(), { env: { BEAT_MS: '100', RECALL_WAIT_MS: '500' } }))
    for (const engine of engines) await engine.limits.beat()
  })
  afterAll(async () => {
    for (const engine of engines) await engine.stop()
    expect(await checkInvariants(database.db)).toEqual([])
    await database.dispose()
  })
  const on = (i: number): TestEngine => engines[i % engines.length] as TestEngine

  let nextKeyId = 300
  async function newKey(calls: number | null, strict = false) {
    const keyId = nextKeyId++
    const principal = caller({ keyId, orgId: keyId, userId: null })
    const asking = (worst = cost) => request(cost, { principal, worstUinr: worst })
    const set = (i: number, cap: bigint | null, isStrict = strict) => on(i).limits.budgets.set(keyId, 'key', String(keyId), cap, { strict: isStrict })
    await set(0, calls === null ? null : BigInt(calls) * cost)
    const call = (i: number, worst = cost) => outcomeOf(callOnce(on(i), asking(worst), cost))
    const counter = () => database.db.one(counterOf, String(keyId))
    const flushAll = () => Promise.all(engines.map(engine => engine.limits.flushNow()))
    /** Makes calls on every process, so that each has a lease. */
    async function warm() {
      for (const i of times(9)) expect(await call(i)).toBe('ok')
      await flushAll()
      expect((await counter()).leased).toBeGreaterThan(3n * cost)
    }
    return { keyId, asking, set, call, counter, flushAll, warm }
  }

  it('after the commit of a lowered cap nothing more is granted, unused leases come back, and a running call settles normally', async () => {
    const { asking, set, call, counter, flushAll, warm } = await newKey(10_000)
    await warm()
    const asked = asking()
    const running = await on(1).limits.admit(asked)
    await set(0, 9n * cost)
    // This is more than any process has left in its lease, so the database must decide, and refuses.
    const large = request(100n * cost, { principal: asked.principal })
    expect(['budget_exceeded', 'budget_held']).toContain(await outcomeOf(on(2).limits.admit(large)))
    await until(async () => (await counter()).leased <= cost)
    for (const i of times(3)) await until(async () => ['budget_exceeded', 'budget_held'].includes(await call(i)))
    const { spent } = await counter()
    void running.open(eventOf(asked, 0n))
    await running.settle(eventOf(asked, cost))
    await flushAll()
    expect((await counter()).spent).toBe(spent + cost)
    for (const i of times(3)) await until(async () => (await call(i)) === 'budget_exceeded')
  })

  it('a cap that is lowered without a notification also stops grants, and leases come back at the next read of the control log', async () => {
    const { keyId, asking, counter, warm } = await newKey(10_000)
    await warm()
    await database.db.one(capUnheard, keyId, 9n * cost)
    const large = request(100n * cost, { principal: asking().principal })
    expect(['budget_exceeded', 'budget_held']).toContain(await outcomeOf(on(1).limits.admit(large)))
    await until(async () => (await counter()).leased === 0n)
  })

  it('a raised cap admits the next call on every process, even on one that remembers a refusal', async () => {
    const { set, call, flushAll } = await newKey(9)
    for (const round of times(3)) {
      for (const _ of times(9)) await until(async () => (await Promise.all(times(3).map(i => call(i)))).every(outcome => outcome !== 'ok'))
      await flushAll()
      for (const i of times(3)) await until(async () => (await call(i)) === 'budget_exceeded')
      await set(round, BigInt(9 * (round + 2)) * cost)
      expect(await call(round)).toBe('ok')
      for (const i of times(3)) await until(async () => (await call(i)) === 'ok')
    }
  })

  it('a cap that is removed and set again counts the spend in between', async () => {
    const { set, call, counter, flushAll, warm } = await newKey(10_000)
    await warm()
    await set(1, null)
    for (const i of times(6)) expect(await call(i)).toBe('ok')
    await flushAll()
    expect((await counter()).spent).toBe(15n * cost)
    await set(2, 16n * cost)
    for (const i of times(3)) await until(async () => ['budget_exceeded', 'budget_held'].includes(await call(i)))
    await flushAll()
    // A call that was already running when the cap was set is not refused. The cap applies to the next call.
    expect((await counter()).spent).toBeGreaterThanOrEqual(16n * cost)
    expect((await counter()).spent).toBeLessThanOrEqual(16n * cost + 3n * cost)
  })

  it('when a cap becomes strict, every process admits only calls whose worst case fits, and the cap is never exceeded', async () => {
    const { set, call, counter, flushAll, warm } = await newKey(10_000)
    await warm()
    await set(1, 12n * cost + 1n, true)
    await until(async () => (await counter()).leased === 0n)
    for (const i of times(3)) await until(async () => (await call(i, 4n * cost)) === 'budget_exceeded')
    let served = 9
    for (let i = 0; served < 12; i++) if ((await call(i)) === 'ok') served++
    for (const i of times(3)) await until(async () => (await call(i)) === 'budget_exceeded')
    await flushAll()
    expect((await counter()).spent).toBe(12n * cost)
  })

  it('a refusal reports the holds of running calls, but not unused leases of other processes, as held', async () => {
    const { asking, warm } = await newKey(10_000, true)
    await warm()
    const refusedWith = async (worst: bigint) =>
      Promise.resolve(on(0).limits.admit(asking(worst))).then(
        () => null,
        error => error,
      )
    const tooLarge = await refusedWith(20_000n * cost)
    expect([tooLarge.errorName, tooLarge.toBody().held_inr, tooLarge.toBody().in_doubt_inr]).toEqual(['budget_exceeded', 0, 0])
    const running = await on(1).limits.admit(asking(9000n * cost))
    const held = await refusedWith(2000n * cost)
    expect([held.errorName, held.toHeaders()['retry-after'], held.toBody().held_inr]).toEqual(['budget_held', '5', 9])
    running.release()
  })

  it('three processes can spend a whole cap, and none refuses a call while another has an unused lease', async () => {
    // Calls that cost their whole hold, and calls that cost only a small part of it. Of the latter there is one caller for each process, because a process
    // remembers a refusal for a moment.
    for (const [cap, value, callers] of [
      [60n * cost, cost, 9],
      [400n * cost, cost, 9],
      [40n * cost, cost / 10n, 3],
    ] as const) {
      const { asking, counter, flushAll, set } = await newKey(1)
      await set(0, cap)
      await until(async () =>
        (await Promise.all(engines.map(engine => engine.limits.budgets.get(asking().principal.orgId, 'key', String(asking().principal.keyId))))).every(
          status => status.capUinr === cap,
        ),
      )
      let spent = 0n
      let inHand = 0n
      const wrong: string[] = []
      /** The last time at which spent and held amounts left no room for a whole call. */
      let fullAtMs = 0
      const look = () => {
        if (spent + inHand + cost > cap) fullAtMs = performance.now()
      }
      await Promise.all(
        times(callers).map(async i => {
          for (;;) {
            const asked = asking()
            const askedAtMs = performance.now()
            look()
            try {
              const permit = await on(i).limits.admit(asked)
              inHand += cost
              look()
              void permit.open(eventOf(asked, 0n))
              await systemClock.sleep(i % 3)
              await permit.settle(eventOf(asked, value))
              inHand -= cost
              spent += value
            } catch (error) {
              expect(['budget_exceeded', 'budget_held']).toContain((error as { errorName?: string }).errorName)
              if (spent >= cap) return
              look()
              if (fullAtMs < askedAtMs) wrong.push(`${i}: spent ${spent}, held ${inHand} of ${cap}`)
              // A pause that is longer than a process remembers a refusal.
              await systemClock.sleep(300)
            }
          }
        }),
      )
      await flushAll()
      expect((await counter()).spent).toBeGreaterThanOrEqual(cap)
      expect((await counter()).spent).toBeLessThan(cap + cost)
      expect(wrong).toEqual([])
    }
  })
})
