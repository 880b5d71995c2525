import { afterAll, beforeAll, expect, it } from 'vitest'
import { checkInvariants } from '../../../src/gateway/limits/invariants.ts'
import { statement } from '../../../src/platform/db/db.ts'
import { type TestDatabase, testDatabase } from '../../harness/database.ts'
import { callOnce, request, startEngine } from './engine.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await testDatabase()
  const engine = await startEngine(database.db)
  await engine.limits.budgets.set(1, 'key', '7', 1000n)
  await callOnce(engine, request(100n), 900n)
  await engine.stop()
  expect(await checkInvariants(database.db)).toEqual([])
})
afterAll(() => database.dispose())

const broken: readonly (readonly [string, string, RegExp])[] = [
  ['a lease without its counter', 'update leases set amount = amount + 5', /has 0 leased, its leases and lasting holds sum to 5/],
  ['a closed process with a lease', 'update leases set amount = amount + 5', /is closed and still leases of \d+ counters/],
  ['a counter above the sum of its events', "update counters set spent = 901 where scope = 'key'", /\(key\) has 901 spent, its events sum to 900/],
  [
    'a period of a budget above the months of its scope',
    "insert into counters (org_id, scope, scope_id, metric, period, cap, spent) values (1, 'key', '7', 'budget', 'ever', 5000, 901)",
    /\(key\) has 901 spent in the period of a budget, the months of its scope have 900/,
  ],
  ['an event without its counter', "delete from counters where scope = 'member'", /Counter 0 \(member\) has 0 spent, its events sum to 900/],
  [
    'a prepaid balance beside its ledger',
    "insert into counters (org_id, scope, scope_id, metric, period, cap) values (1, 'org', '1', 'prepaid', 'ever', 50)",
    /has a balance of 50, its ledger sums to 0/,
  ],
  [
    'a credit without a balance',
    "insert into ledger (org_id, kind, amount_uinr, reason, ref, at) values (1, 'credit', 70, 'grant', 'x', now())",
    /has a balance of 0, its ledger sums to 70/,
  ],
  [
    'a debit of no event',
    "insert into ledger (org_id, kind, amount_uinr, event_id, at) values (1, 'debit', -5, gen_random_uuid(), now())",
    /is 5, its cost is nowhere/,
  ],
  [
    'a debit that is not the cost',
    "insert into ledger (org_id, kind, amount_uinr, event_id, at) select 1, 'debit', -5, id, now() from usage_events",
    /is 5, its cost is 900/,
  ],
  [
    'concurrent calls that were spent',
    "insert into counters (org_id, scope, scope_id, metric, period, cap, spent) values (1, 'key', '7', 'running', 'ever', 5, 1)",
    /of concurrent calls has 1 spent/,
  ],
  [
    'a mark that fired twice',
    "insert into webhook_events (id, org_id, type, created, data) select id || 'x', org_id, type, created, data from webhook_events where type = 'budget.warn'",
    /budget.warn of key 7 in organisation 1 fired 2 times/,
  ],
]

it.each(broken)('the invariant check finds %s', async (what, sql, sentence) => {
  let found: string[] = []
  const undone = new Error('undone')
  const work = database.db.tx(async tx => {
    await tx.exec(statement<[]>(`test.break ${what}`, sql))
    found = await checkInvariants(tx)
    throw undone
  })
  await expect(work).rejects.toBe(undone)
  expect(found).toContainEqual(expect.stringMatching(sentence))
  expect(await checkInvariants(database.db)).toEqual([])
})
