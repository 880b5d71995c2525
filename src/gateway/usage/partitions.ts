/** Makes the monthly partitions of usage events ahead of time. */
import type { Db } from '../../platform/db.ts'
import { endOfIstMonthMs, istMonth } from '../../platform/ist-time.ts'
import type { Log } from '../../platform/log.ts'
import { partitionSql } from './queries.ts'

/** How often the job looks; partitions are made a month ahead. */
export const partitionsEveryMs = 6 * 3600_000

/** Makes the partitions of this IST month and the next. A month that already has rows in the default partition stays there: reports read both. */
export async function makePartitions(db: Db, nowMs: number, log: Log): Promise<void> {
  for (const atMs of [nowMs, endOfIstMonthMs(nowMs)]) {
    const [year, month] = istMonth(atMs).split('-').map(Number)
    if (year === undefined || month === undefined) continue
    try {
      await db.script(partitionSql(year, month))
    } catch (error) {
      // Another process may be making it, or rows of that month lie in the default partition.
      log.warn('usage_partition_not_made', { error })
    }
  }
}
