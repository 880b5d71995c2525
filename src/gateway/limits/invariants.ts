/** What must always be true of counters, leases, events, ledger and outbox. `brigade doctor` and the tests ask it. */
import type { Db } from '../../platform/db.ts'
import { violationsOfCrossings, violationsOfLeases, violationsOfPrepaid, violationsOfSpend } from './queries.ts'

/** One broken invariant, in words. */
export interface Violation {
  readonly invariant: 'leases' | 'spend' | 'prepaid' | 'crossings'
  readonly message: string
}

/**
 * Checks in the database: what is leased of a counter is the sum of its leases; what a scope spent in a month is the value of its
 * events (an agent's at least, because its children count in it); the prepaid balance is the sum of the ledger; a mark of a budget
 * fired once a month. Empty when all is well.
 */
export async function checkInvariants(db: Db): Promise<Violation[]> {
  const found: Violation[] = []
  for (const row of await db.many(violationsOfLeases)) found.push({ invariant: 'leases', message: `counter ${row.counterId} has ${row.leased} leased, its leases sum to ${row.sum}` })
  for (const row of await db.many(violationsOfSpend)) found.push({ invariant: 'spend', message: `counter ${row.counterId} (${row.scope}) has ${row.spent} spent, its events sum to ${row.sum}` })
  for (const row of await db.many(violationsOfPrepaid)) found.push({ invariant: 'prepaid', message: `organisation ${row.orgId} has a balance of ${row.balance}, its ledger sums to ${row.sum}` })
  for (const row of await db.many(violationsOfCrossings)) found.push({ invariant: 'crossings', message: `${row.type} of ${row.scope} ${row.scopeId} in organisation ${row.orgId} fired ${row.count} times` })
  return found
}
