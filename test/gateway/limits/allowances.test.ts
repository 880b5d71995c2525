import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { creditIn } from '../../../src/gateway/limits/budgets/prepaid.ts'
import { checkInvariants } from '../../../src/gateway/limits/invariants.ts'
import { GatewayError } from '../../../src/platform/errors.ts'
import { type TestDatabase, testDatabase } from '../../harness/database.ts'
import { caller, callOnce, type EngineOptions, eventOf, movableClock, outcomeOf, request, startEngine, type TestEngine } from './engine.ts'

let database: TestDatabase
let engines: TestEngine[] = []
const start = async (options: EngineOptions = {}): Promise<TestEngine> => {
  const engine = await startEngine(database.db, options)
  engines.push(engine)
  return engine
}

beforeEach(async () => {
  database = await testDatabase()
})
afterEach(async () => {
  for (const engine of engines) await engine.stop()
  engines = []
  expect(await checkInvariants(database.db)).toEqual([])
  await database.dispose()
})

describe.each([
  ['with a database request for every call', '0'],
  ['with slices', '10'],
])('budgets, %s', (_, seconds) => {
  const env = { ALLOWANCE_SECONDS: seconds }

  it('a budget of ten times the cost of a call admits exactly ten of 200 parallel calls', async () => {
    const engine = await start({ env })
    await engine.limits.budgets.set(1, 'key', '7', 10_000n)
    const calls = Array.from({ length: 200 }, () => callOnce(engine, request(1000n), 1000n))
    const outcomes = await Promise.all(calls.map(outcomeOf))
    expect(outcomes.filter(outcome => outcome === 'ok')).toHaveLength(10)
    expect(new Set(outcomes.filter(outcome => outcome !== 'ok'))).toEqual(new Set(['budget_exceeded']))
    await engine.limits.flushNow()
    const [status] = await engine.limits.budgets.list(1, [{ scope: 'key', scopeId: '7' }])
    expect(status).toMatchObject({ capUinr: 10_000n, spentUinr: 10_000n, heldUinr: 0n, state: 'blocked' })
  })

  it('the last call that a budget admits is held in full, and the next one is refused', async () => {
    const engine = await start({ env })
    await engine.limits.budgets.set(1, 'org', '1', 1500n)
    const first = await engine.limits.admit(request(1000n))
    const second = await engine.limits.admit(request(1000n))
    expect(await outcomeOf(engine.limits.admit(request(1000n)))).toBe('budget_held')
    first.release()
    second.release()
    expect(await outcomeOf(engine.limits.admit(request(1000n)))).toBe('ok')
  })

  it('a strict budget refuses a call that could exceed its cap', async () => {
    const engine = await start({ env })
    await engine.limits.budgets.set(1, 'org', '1', 1500n, { strict: true })
    const permit = await engine.limits.admit(request(100n, { worstUinr: 1000n }))
    expect(await outcomeOf(engine.limits.admit(request(100n, { worstUinr: 1000n })))).toBe('budget_held')
    permit.release()
    await engine.limits.flushNow()
    expect(await outcomeOf(engine.limits.admit(request(100n, { worstUinr: 2000n })))).toBe('budget_exceeded')
  })

  it('a refusal reports the narrowest refusing scope with its figures', async () => {
    const engine = await start({ env })
    await engine.limits.budgets.set(1, 'org', '1', 1000n)
    await engine.limits.budgets.set(1, 'agent', '9', 2_000_000n)
    await callOnce(engine, request(2_000_000n, { principal: caller({ orgId: 1 }), agentId: 9 }), 2_000_000n)
    const thrown = await Promise.resolve(engine.limits.admit(request(1000n, { agentId: 9 }))).catch(error => error)
    expect(thrown).toBeInstanceOf(GatewayError)
    expect(thrown.errorName).toBe('agent_budget_exceeded')
    expect(thrown.toBody()).toMatchObject({ scope: 'agent', cap_inr: 2, spent_inr: 2, held_inr: 0, in_doubt_inr: 0 })
    expect(thrown.toBody()['resets_at']).toMatch(/T18:30:00.000Z$/)
    expect(thrown.toHeaders()['x-should-retry']).toBe('false')
    const plain = await Promise.resolve(engine.limits.admit(request(1000n))).catch(error => error)
    expect(plain.toBody()).toMatchObject({ scope: 'org' })
  })

  it('a call holds its amount in all scopes or in none', async () => {
    const engine = await start({ env })
    await engine.limits.budgets.set(1, 'org', '1', 100n)
    await engine.limits.budgets.set(1, 'key', '7', 100_000n)
    await callOnce(engine, request(100n), 100n)
    expect(await outcomeOf(engine.limits.admit(request(100n)))).toBe('budget_exceeded')
    await engine.limits.flushNow()
    const [key] = await engine.limits.budgets.list(1, [{ scope: 'key', scopeId: '7' }])
    expect(key).toMatchObject({ spentUinr: 100n, heldUinr: 0n })
  })

  it('spend is also counted without a cap, so a budget that is set in the middle of a month includes it', async () => {
    const engine = await start({ env })
    await callOnce(engine, request(100n), 90n)
    await engine.limits.flushNow()
    await engine.limits.budgets.set(1, 'member', '5', 100n)
    expect(await engine.limits.budgets.get(1, 'member', '5')).toMatchObject({ spentUinr: 90n, state: 'warned' })
    await callOnce(engine, request(100n), 50n)
    expect(await outcomeOf(engine.limits.admit(request(1n)))).toBe('budget_exceeded')
  })

  it('a raised or lowered cap applies to the next call', async () => {
    const engine = await start({ env })
    await engine.limits.budgets.set(1, 'key', '7', 100n)
    await callOnce(engine, request(100n), 100n)
    expect(await outcomeOf(engine.limits.admit(request(10n)))).toBe('budget_exceeded')
    await engine.limits.budgets.set(1, 'key', '7', 1000n)
    expect(await outcomeOf(callOnce(engine, request(10n), 10n))).toBe('ok')
    await engine.limits.budgets.set(1, 'key', '7', 50n)
    await engine.limits.flushNow()
    expect(await outcomeOf(engine.limits.admit(request(10n)))).toBe('budget_exceeded')
    await engine.limits.budgets.set(1, 'key', '7', null)
    expect(await outcomeOf(callOnce(engine, request(10n), 10n))).toBe('ok')
  })

  it('a hold is extended while there is room, and then takes the rest', async () => {
    const engine = await start({ env })
    await engine.limits.budgets.set(1, 'agent', '9', 1000n)
    const asked = request(100n, { agentId: 9 })
    const permit = await engine.limits.admit(asked)
    expect(await permit.extendTo(600n)).toBe(true)
    expect(permit.heldUinr).toBe(600n)
    expect(await permit.extendTo(1600n)).toBe(false)
    expect(permit.heldUinr).toBe(1000n)
    void permit.open(eventOf(asked, 0n))
    await permit.settle(eventOf(asked, 1000n))
    expect(await outcomeOf(engine.limits.admit(request(1n, { agentId: 9 })))).toBe('agent_budget_exceeded')
    // The budget has room and the call is on the cheaper of two routes, so the balance refuses the extension. The call may use the rest of the balance.
    const at = new Date()
    await engine.db.tx(tx => creditIn(tx, { orgId: 1, amountUinr: 300n, reason: 'grant', ref: 'a', at }))
    const mixed = await engine.limits.admit(request(500n, { agentId: 8, debitUinr: 100n }))
    expect([await mixed.extendTo(500n), await mixed.extendTo(900n, true), mixed.refusedBy, mixed.heldUinr]).toEqual([true, false, 'prepaid', 300n])
    expect([await mixed.extendTo(900n, true), mixed.refusedBy, mixed.heldUinr]).toEqual([false, 'prepaid', 300n])
    mixed.release()
    await engine.limits.budgets.set(1, 'org', '1', 1500n)
    await engine.db.tx(tx => creditIn(tx, { orgId: 1, amountUinr: 9000n, reason: 'grant', ref: 'b', at }))
    const wide = await engine.limits.admit(request(100n, { agentId: 7, debitUinr: 50n }))
    expect([await wide.extendTo(900n, true), wide.refusedBy, wide.heldUinr]).toEqual([false, 'org', 500n])
    wide.release()
  })

  it('a budget starts from zero in a new IST month, and a running call is charged to the month of its admission', async () => {
    const lastMinute = Date.parse('2026-11-30T18:29:00Z')
    const clock = movableClock(lastMinute)
    const engine = await start({ env, clock })
    await engine.limits.budgets.set(1, 'key', '7', 100n)
    const asked = request(100n, {}, lastMinute)
    const permit = await engine.limits.admit(asked)
    expect(await outcomeOf(engine.limits.admit(request(100n)))).toBe('budget_held')
    clock.moveTo(Date.parse('2026-11-30T18:30:01Z'))
    expect(await outcomeOf(callOnce(engine, request(40n, {}, clock.nowMs()), 40n))).toBe('ok')
    void permit.open(eventOf(asked, 0n))
    await permit.settle(eventOf(asked, 100n))
    await engine.limits.flushNow()
    expect(await engine.limits.budgets.get(1, 'key', '7')).toMatchObject({ spentUinr: 40n })
  })

  it('calls above the daily limit are refused until IST midnight, and a refused call does not count', async () => {
    const evening = Date.parse('2026-11-21T18:00:00Z')
    const clock = movableClock(evening)
    const engine = await start({ env, clock })
    const principal = caller({ limits: { rpmLimit: null, dailyLimit: 2 } })
    await engine.limits.budgets.set(1, 'org', '1', 1n)
    await callOnce(engine, request(1n, { principal }, evening), 1n)
    expect(await outcomeOf(engine.limits.admit(request(1n, { principal })))).toBe('budget_exceeded')
    await engine.limits.budgets.set(1, 'org', '1', null)
    await callOnce(engine, request(1n, { principal }, evening), 1n)
    const thrown = await Promise.resolve(engine.limits.admit(request(1n, { principal }))).catch(error => error)
    expect(thrown.errorName).toBe('daily_limit_reached')
    expect(Number(thrown.toHeaders()['retry-after'])).toBeLessThanOrEqual(1800)
    clock.moveTo(Date.parse('2026-11-21T18:30:01Z'))
    expect(await outcomeOf(callOnce(engine, request(1n, { principal }, clock.nowMs()), 1n))).toBe('ok')
  })

  it('exactly the allowed number of requests in a minute is admitted', async () => {
    const clock = movableClock(Date.parse('2026-11-21T10:00:05Z'))
    const engine = await start({ env, clock })
    const principal = caller({ limits: { rpmLimit: 3, dailyLimit: null } })
    const outcomes = await Promise.all(Array.from({ length: 20 }, () => outcomeOf(engine.limits.takeRate(principal))))
    expect(outcomes.filter(outcome => outcome === 'ok')).toHaveLength(3)
    const thrown = await Promise.resolve(engine.limits.takeRate(principal)).catch(error => error)
    expect(thrown.errorName).toBe('rate_limit_exceeded')
    expect(Number(thrown.toHeaders()['retry-after'])).toBeLessThanOrEqual(55)
    const raised = caller({ limits: { rpmLimit: 5, dailyLimit: null } })
    expect(await outcomeOf(engine.limits.takeRate(raised))).toBe('ok')
    expect(await outcomeOf(engine.limits.takeRate(raised))).toBe('ok')
    expect(await outcomeOf(engine.limits.takeRate(raised))).toBe('rate_limit_exceeded')
    clock.moveTo(Date.parse('2026-11-21T10:01:00Z'))
    expect(await outcomeOf(engine.limits.takeRate(raised))).toBe('ok')
  })
})

it('with room in every counter at most one in a hundred calls asks the database, and near the end of a counter every call does', async () => {
  const engine = await start()
  await engine.limits.budgets.set(1, 'org', '1', 1_000_000_000_000n)
  await engine.limits.budgets.set(1, 'key', '7', 1_000_000_000_000n)
  for (const id of [20, 21, 22, 23]) await engine.limits.budgets.set(1, 'agent', String(id), 1_000_000_000_000n)
  const principal = caller({ limits: { rpmLimit: 100_000_000, dailyLimit: 100_000_000 } })
  const asking = () => request(1000n, { principal, agentId: 20, agentAncestorIds: [21, 22, 23] })
  for (let i = 0; i < 10_000; i++) {
    await engine.limits.takeRate(principal)
    await callOnce(engine, asking(), 600n)
  }
  expect(engine.limits.acquires).toBeLessThanOrEqual(100)
  await engine.limits.flushNow()
  for (const id of ['20', '23']) expect(await engine.limits.budgets.get(1, 'agent', id)).toMatchObject({ spentUinr: 6_000_000n })
  await engine.limits.budgets.set(1, 'agent', '23', 6_000_000n + 5000n)
  let served = 0
  for (let before = engine.limits.acquires; (await outcomeOf(callOnce(engine, asking(), 1000n))) === 'ok'; before = engine.limits.acquires) {
    served++
    if (served > 3) expect(engine.limits.acquires - before).toBeLessThanOrEqual(1)
  }
  expect(served).toBe(5)
})
