/** Budgets that are set while calls run. These calls have no hold in the new budget. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type TestDatabase, testDatabase } from '../../harness/database.ts'
import { eventOf, outcomeOf, request, startEngine } from './engine.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await testDatabase()
})
afterAll(() => database.dispose())

it('a budget that is set, or set again, during a call includes the cost of the call as soon as it ends', async () => {
  const engine = await startEngine(database.db, { env: { ALLOWANCE_SECONDS: '0', JOURNAL_FLUSH_MS: '3600000' } })
  const admitted = async () => {
    const asked = request(1n)
    const permit = await engine.limits.admit(asked)
    return { settle: (cost: bigint) => permit.settle(eventOf(asked, cost)) }
  }
  const early = await admitted()
  await engine.limits.budgets.set(1, 'key', '7', 2n)
  await admitted()
  await early.settle(1n)
  // One unit is spent and one is held.
  expect(await outcomeOf(engine.limits.admit(request(1n)))).toBe('budget_held')
  await engine.limits.budgets.set(1, 'key', '7', null)
  const between = await admitted()
  await engine.limits.budgets.set(1, 'key', '7', 4n)
  await admitted()
  await between.settle(1n)
  expect(await outcomeOf(engine.limits.admit(request(1n)))).toBe('budget_held')
  await engine.limits.stop()
})
