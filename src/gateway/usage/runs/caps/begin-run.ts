/** Makes the row of a run before its first call has ended, because its counters need one. */
import type { Tx } from '../../../../platform/db/db.ts'
import { fail } from '../../../../platform/errors.ts'
import { istDay } from '../../../../platform/values/ist-time.ts'
import type { RunRef } from '../ended-runs.ts'
import { countRunDays, holdRunDays } from '../run-sum-queries.ts'
import { runsMax } from '../run-sums.ts'
import { type CapsRow, type CountedRow, insertCappedRun } from './cap-queries.ts'

/** Returns the new row, or null when another process has made it. `nowMs` is its first call. Throws `cap` when too many runs have begun on the day. */
export async function beginRun(tx: Tx, { orgId, ownerKind, ownerId, runId }: RunRef, nowMs: number): Promise<CapsRow | null> {
  const day = istDay(nowMs)
  const [held] = await tx.many(holdRunDays, [orgId], [day])
  if ((held?.runs ?? 0) >= runsMax)
    throw fail('cap', { message: `At most ${runsMax} runs of an organisation begin on a day. A run with caps cannot be added up with others.` })
  const made = await tx.maybe(insertCappedRun, orgId, ownerKind, ownerId, runId, new Date(nowMs), day)
  if (made !== null) await tx.exec(countRunDays, [orgId], [day], [1])
  return made
}

/** Returns true when a run has both of its counters. */
export const hasBoth = (row: CountedRow | null): row is CountedRow & { readonly spendId: bigint; readonly callsId: bigint } =>
  row?.capped === true && row.spendId !== null && row.callsId !== null
