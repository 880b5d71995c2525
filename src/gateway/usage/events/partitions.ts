/** Makes the monthly partitions of usage events ahead of time. */
import type { Db } from '../../../platform/db/db.ts'
import type { Log } from '../../../platform/observe/log.ts'
import { endOfIstMonthMs, istMonth } from '../../../platform/values/ist-time.ts'
import { partitionSql } from '../queries.ts'

/** How often the job looks. */
export const partitionsEveryMs = 6 * 3600_000
/**
 * Months that are made in addition to the present one. A month whose first event came before its partition can get none any more: its rows are in the
 * default partition, and are reported and deleted like all others, but one by one. That happens only to a gateway whose jobs have not run for three
 * months, or whose clock has jumped.
 */
const monthsAhead = 3

/** Makes the partitions of this IST month and of those that follow. */
export async function makePartitions(db: Db, nowMs: number, log: Log): Promise<void> {
  let atMs = nowMs
  for (let ahead = 0; ahead <= monthsAhead; ahead++, atMs = endOfIstMonthMs(atMs)) {
    const [year, month] = istMonth(atMs).split('-').map(Number)
    if (year === undefined || month === undefined) continue
    try {
      await db.script(partitionSql(year, month))
    } catch (error) {
      // Another process may be making it, or rows of that month are in the default partition.
      log.warn('usage_partition_not_made', { error })
    }
  }
}
