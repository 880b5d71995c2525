/** What must always be true of counters, leases, events, ledger and outbox. `brigade doctor` and the tests ask it. */
import type { Queryable } from '../../platform/db/db.ts'
import { violationsOfFamilies } from './budgets/budget-queries.ts'
import { violationsOfCrossings, violationsOfLeases, violationsOfPrepaid, violationsOfSpend } from './engine/queries.ts'
import { violationsOfClosed, violationsOfDebits, violationsOfRunning } from './journal/recovery-queries.ts'

/**
 * Checks in the database: what is leased of a counter is the sum of its leases; what a scope spent in a month is the value of its
 * events (an agent's at least, because its children count in it); the prepaid balance is the sum of the ledger; a mark of a budget
 * fired once a month; active children of an agent have no more than it has; a closed process leases nothing; concurrent calls are never
 * spent; a debit is the cost of its event. That an event counts once is its primary key, which holds its day because its id does. What
 * only a process or a moment can show (its own split of a lease, a cap that was passed and lowered) is left to the tests.
 * One sentence for each broken invariant; empty when all is well.
 */
export async function checkInvariants(db: Queryable): Promise<string[]> {
  const found: string[] = []
  for (const row of await db.many(violationsOfLeases)) found.push(`Counter ${row.counterId} has ${row.leased} leased, its leases sum to ${row.sum}.`)
  for (const row of await db.many(violationsOfSpend))
    found.push(`Counter ${row.counterId} (${row.scope}) has ${row.spent} spent, its events sum to ${row.sum}.`)
  for (const row of await db.many(violationsOfPrepaid)) found.push(`Organisation ${row.orgId} has a balance of ${row.balance}, its ledger sums to ${row.sum}.`)
  for (const row of await db.many(violationsOfCrossings))
    found.push(`${row.type} of ${row.scope} ${row.scopeId} in organisation ${row.orgId} fired ${row.count} times.`)
  for (const row of await db.many(violationsOfFamilies))
    found.push(`The active children of agent ${row.parentId} in organisation ${row.orgId} have budgets of ${row.sum} together, the agent ${row.cap}.`)
  for (const row of await db.many(violationsOfClosed)) found.push(`Process ${row.processId} is closed and still leases of ${row.counters} counters.`)
  for (const row of await db.many(violationsOfRunning)) found.push(`Counter ${row.counterId} of concurrent calls has ${row.spent} spent, which is impossible.`)
  for (const row of await db.many(violationsOfDebits)) found.push(`The debit of event ${row.eventId} is ${row.debit}, its cost is ${row.cost ?? 'nowhere'}.`)
  return found
}
