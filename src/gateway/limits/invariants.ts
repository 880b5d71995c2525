/** The invariants of counters, leases, events, ledger and outbox. `brigade doctor` and the tests check them. */
import type { Queryable } from '../../platform/db/db.ts'
import { violationsOfFamilies } from './budgets/budget-queries.ts'
import { violationsOfPeriods } from './budgets/periods/period-queries.ts'
import { violationsOfCrossings, violationsOfLeases, violationsOfPrepaid, violationsOfSpend } from './engine/queries.ts'
import { violationsOfClosed, violationsOfDebits, violationsOfRunning } from './journal/recovery-queries.ts'
import { violationsOfRunCounters, violationsOfRunSums } from './runs/run-counter-queries.ts'

/**
 * Checks the invariants in the database. Returns one sentence for each broken invariant, and an empty list when all are met.
 *
 * The leased amount of a counter is the sum of its leases and lasting holds. The spend of a scope in a month is the value of its events; for an agent it is at
 * least that, because its children count in it. The prepaid balance is the sum of the ledger. A mark of a budget fires once a period. What the period of a budget
 * has spent is in the months of its scope too. The active
 * children of an agent together have at most the agent's budget. A closed process leases nothing. Concurrent calls are never spent. A debit is
 * the cost of its event. The sums of a run are those of its events, and its counters have the same amounts.
 *
 * The primary key of an event guarantees that the event counts once. The key contains the day, because the id does. Two facts cannot be checked
 * in the database and are left to the tests: how a process splits its lease, and a cap that was reached and then lowered.
 */
export async function checkInvariants(db: Queryable): Promise<string[]> {
  const found: string[] = []
  for (const row of await db.many(violationsOfLeases))
    found.push(`Counter ${row.counterId} has ${row.leased} leased, its leases and lasting holds sum to ${row.sum}.`)
  for (const row of await db.many(violationsOfSpend))
    found.push(`Counter ${row.counterId} (${row.scope}) has ${row.spent} spent, its events sum to ${row.sum}.`)
  for (const row of await db.many(violationsOfPeriods))
    found.push(`Counter ${row.counterId} (${row.scope}) has ${row.spent} spent in the period of a budget, the months of its scope have ${row.sum}.`)
  for (const row of await db.many(violationsOfPrepaid)) found.push(`Organisation ${row.orgId} has a balance of ${row.balance}, its ledger sums to ${row.sum}.`)
  for (const row of await db.many(violationsOfCrossings))
    found.push(`${row.type} of ${row.scope} ${row.scopeId} in organisation ${row.orgId} fired ${row.count} times.`)
  for (const row of await db.many(violationsOfFamilies))
    found.push(`The active children of agent ${row.parentId} in organisation ${row.orgId} have budgets of ${row.sum} together, the agent ${row.cap}.`)
  for (const row of await db.many(violationsOfClosed)) found.push(`Process ${row.processId} is closed and still leases of ${row.counters} counters.`)
  for (const row of await db.many(violationsOfRunning)) found.push(`Counter ${row.counterId} of concurrent calls has ${row.spent} spent, which is impossible.`)
  for (const row of await db.many(violationsOfDebits)) found.push(`The debit of event ${row.eventId} is ${row.debit}, its cost is ${row.cost ?? 'nowhere'}.`)
  for (const row of await db.many(violationsOfRunCounters))
    found.push(
      `Run ${row.number} has ${row.calls} calls and ${row.value}, its counters have ${row.countedCalls ?? 'none'} and ${row.countedValue ?? 'nothing'}.`,
    )
  for (const row of await db.many(violationsOfRunSums))
    found.push(`Run ${row.number} has ${row.calls} calls and ${row.value}, its ${row.events} events sum to ${row.sum}.`)
  return found
}
