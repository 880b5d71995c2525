/** Creates the monthly partitions of usage events in advance. */
import type { Db } from '../../../platform/db/db.ts'
import type { Log } from '../../../platform/observe/log.ts'
import { endOfIstMonthMs, istMonth } from '../../../platform/values/ist-time.ts'
import { partitionSql } from '../queries.ts'

/** Pause between two runs of the job, in milliseconds. */
export const partitionsEveryMs = 6 * 3600_000
/**
 * Number of months after the present one for which partitions are created. When the first event of a month arrives before its partition exists, that
 * month cannot get a partition later. Its rows are then in the default partition. Reports read them as usual, but they must be deleted row by row.
 * That happens only when the jobs have not run for three months, or when the clock jumps.
 */
const monthsAhead = 3

/** Creates the partitions of this IST month and of the following months. */
export async function makePartitions(db: Db, nowMs: number, log: Log): Promise<void> {
  let atMs = nowMs
  for (let ahead = 0; ahead <= monthsAhead; ahead++, atMs = endOfIstMonthMs(atMs)) {
    const [year, month] = istMonth(atMs).split('-').map(Number)
    if (year === undefined || month === undefined) continue
    try {
      await db.script(partitionSql(year, month))
    } catch (error) {
      // Another process may be creating the partition, or the default partition already contains rows of that month.
      log.warn('usage_partition_not_made', { error })
    }
  }
}
