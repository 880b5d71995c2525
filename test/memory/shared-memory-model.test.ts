import fc from 'fast-check'
import { afterAll, beforeAll, test } from 'vitest'
import { onPostgres, type TestDatabase, testDatabase } from '../harness/database.ts'
import { propertyRuns } from '../harness/property-runs.ts'
import { type TestMemory, testMemory } from './service.ts'
import type { Who } from './shared-memory-model.ts'
import { modelPeople, World } from './shared-memory-world.ts'

type Act = (world: World) => Promise<void> | void

/** Makes one fast-check command. It acts on the real service and on the model, and compares them. `toString` gives the text that a failure prints. */
const step = (text: string, act: Act): fc.AsyncCommand<object, World> => ({
  check: () => true,
  async run(_model, world) {
    await act(world)
    await world.check()
  },
  toString: () => text,
})

const who = fc.constantFrom<Who>(0, 1, 2, 3)
const space = fc.constantFrom('alpha', 'beta')
const path = fc.constantFrom(
  'agents/a',
  'agents/b',
  'team/entry-1',
  'team/entry-2',
  'user2/notes',
  'user3/notes',
  'shared-alpha/plan',
  'shared-beta/plan',
  'records/rule',
)
const bytes = fc.constantFrom(0, 1, 40, 150, 400)
const days = fc.constantFrom(1, 2, 5, 40)

const commands = [
  fc.tuple(who, path, bytes).map(([w, p, b]) => step(`write(${w}, ${p}, ${b})`, world => world.write(w, p, b))),
  fc.tuple(who, path, bytes).map(([w, p, b]) => step(`write(${w}, ${p}, ${b})`, world => world.write(w, p, b))),
  fc.tuple(who, path).map(([w, p]) => step(`read(${w}, ${p})`, world => world.read(w, p))),
  fc.tuple(who, path).map(([w, p]) => step(`remove(${w}, ${p})`, world => world.remove(w, p))),
  fc.tuple(who, bytes).map(([w, b]) => step(`promote(${w}, ${b})`, world => world.promote(w, 'rule', b))),
  fc.tuple(fc.integer({ min: 2, max: 6 }), fc.constantFrom(30, 150, 400)).map(([n, b]) => step(`crowd(${n}, ${b})`, world => world.crowd(n, b))),
  fc.tuple(who, space, fc.uniqueArray(who)).map(([w, s, m]) => step(`open(${w}, ${s}, [${m}])`, world => world.open(w, s, m))),
  fc.tuple(who, space, who).map(([w, s, m]) => step(`grant(${w}, ${s}, ${m})`, world => world.change('grant', w, s, m))),
  fc.tuple(who, space, who).map(([w, s, m]) => step(`revoke(${w}, ${s}, ${m})`, world => world.change('revoke', w, s, m))),
  fc.tuple(who, space).map(([w, s]) => step(`retire(${w}, ${s})`, world => world.retire(w, s))),
  days.map(d => step(`pass(${d} days)`, world => world.pass(d))),
  days.map(d => step(`keepFor(${d} days)`, world => world.keepFor(d))),
  fc.constant(step('purge()', world => world.purge())),
]

const quotaBytes = 1_000
/** The number of runs. Both databases together have a thousand. */
const runs = propertyRuns(onPostgres ? 600 : 400)

let database: TestDatabase
let testing: TestMemory
let people: number[]
beforeAll(async () => {
  database = await testDatabase()
  testing = await testMemory({ db: database.db })
  people = await modelPeople(database.db)
})
afterAll(async () => {
  await testing?.close()
  await database?.dispose()
})

test('shares, quota and the expiry of journal entries match a simple model for any sequence of operations', async () => {
  await fc.assert(
    fc.asyncProperty(fc.commands(commands, { maxCommands: 16, size: 'max' }), async steps => {
      const world = await World.start(database.db, testing, people, { store: 'folder' }, quotaBytes)
      await fc.asyncModelRun(() => ({ model: {}, real: world }), steps)
      await world.checkAll()
    }),
    { numRuns: runs },
  )
}, 240_000)
