import fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { checkInvariants } from '../../../src/gateway/limits/invariants.ts'
import { onPostgres, type TestDatabase, testDatabase } from '../../harness/database.ts'
import { propertyRuns } from '../../harness/property-runs.ts'
import { World } from './model-world.ts'

const amount = fc.integer({ min: 1, max: 400 })
const slot = fc.nat({ max: 5 })
const which = fc.nat({ max: 20 })
const cap = fc.option(fc.integer({ min: 1, max: 3000 }), { freq: 6 })
const step = fc.oneof(
  { weight: 8, arbitrary: fc.record({ kind: fc.constant('admit' as const), slot, amount, isOpened: fc.boolean(), draft: amount }) },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('settle' as const), which, amount }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('release' as const), which }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('extend' as const), which, amount }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('set' as const), slot, budget: fc.nat({ max: 4 }), cap, strict: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('flush' as const), slot }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('beat' as const), slot }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('turn' as const), period: fc.constantFrom('day', 'week', 'month') }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('crash' as const), slot }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('adopt' as const), slot }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('snapshot' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('failover' as const) }) },
)
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never

async function play(world: World, next: Step): Promise<void> {
  world.step()
  switch (next.kind) {
    case 'admit':
      return world.admit(next.slot, next.amount, next.isOpened, next.draft)
    case 'settle':
      return world.settle(next.which, next.amount)
    case 'release':
      return world.release(next.which)
    case 'extend':
      return world.extend(next.which, next.amount)
    case 'set':
      return world.set(next.slot, next.budget, next.cap, next.strict)
    case 'flush':
      return world.flush(next.slot)
    case 'beat':
      return world.beat(next.slot)
    case 'turn':
      return world.turn(next.period)
    case 'crash':
      return world.crash(next.slot)
    case 'adopt':
      return world.adopt(next.slot)
    case 'snapshot':
      return world.snapshot()
    case 'failover':
      return world.failOver()
  }
}

let database: TestDatabase
beforeAll(async () => {
  database = await testDatabase()
})
afterAll(async () => {
  expect(await checkInvariants(database.db)).toEqual([])
  await database.dispose()
})

/** The number of runs. Both databases together have about a thousand. */
const runs = onPostgres ? { one: 140, several: 130 } : { one: 150, several: 80 }

it.each([
  { seconds: '0', engines: 1, count: runs.one },
  { seconds: '10', engines: 1, count: runs.one },
  { seconds: '0', engines: 3, count: runs.several },
  { seconds: '10', engines: 3, count: runs.several },
])(
  'budgets behave like the model under any changes of calls, caps, periods, processes and the database ($engines engines, slices of $seconds s)',
  async ({ seconds, engines, count }) => {
    let orgId = 1000 + 10_000 * engines + 1_000_000 * Number(seconds)
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 25 }), async steps => {
        const world = new World(database.db, ++orgId, seconds)
        try {
          await world.start(engines)
          await world.set(0, 0, 1000, false)
          await world.set(0, 2, 1200, false)
          for (const next of steps) {
            await play(world, next)
            await world.check()
          }
          await world.finish()
        } catch (error) {
          await world.abandon()
          throw error
        }
      }),
      { numRuns: propertyRuns(count) },
    )
  },
  240_000,
)
