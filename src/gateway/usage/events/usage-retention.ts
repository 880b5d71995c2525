/** Deletes usage events that are older than USAGE_KEEP_DAYS. The sums by day stay, and reports read the sums. Decision 0340 gives the reasons. */
import type { Clock } from '../../../platform/clock.ts'
import type { Db } from '../../../platform/db/db.ts'
import type { Log } from '../../../platform/observe/log.ts'
import { istDay } from '../../../platform/values/ist-time.ts'
import { deleteOldEvents, deleteOldHourSums, dropPartitionSql, keepFrom, listPartitions } from './usage-retention-queries.ts'

/** Pause between two runs of the job, in milliseconds. */
export const retentionEveryMs = 6 * 3600_000
const dayMs = 24 * 3600_000
/** Number of rows of one delete. It takes a fraction of a second, so no flush waits long for it. */
const batch = 5_000

/** How many IST days keep sums by hour, today included. */
export const hourDaysKept = 32

export interface RetentionDeps {
  readonly db: Db
  readonly clock: Clock
  readonly log: Log
  /** The setting USAGE_KEEP_DAYS. All events of today and of this number of earlier IST days are kept. */
  readonly keepDays: number
}

/**
 * Drops the partitions of months that are completely too old. Then deletes the old rows of the other partitions, in batches of bounded size. It stops
 * early when the signal aborts, and the next run continues. Returns how many rows were deleted individually.
 */
export async function deleteOldUsage({ db, clock, log, keepDays }: RetentionDeps, signal: AbortSignal): Promise<number> {
  const firstKept = istDay(clock.nowMs() - keepDays * dayMs)
  await db.exec(keepFrom, firstKept)
  for (const { name } of await db.many(listPartitions)) {
    if (signal.aborted) return 0
    // usage_events_2026_01 contains the days of 2026-01. It can be dropped when the first kept day is in a later month.
    if (name.slice('usage_events_'.length).replace('_', '-') >= firstKept.slice(0, 7)) continue
    await drop(db, name, log)
  }
  let deleted = 0
  for (let count = batch; count === batch && !signal.aborted; deleted += count) count = await db.exec(deleteOldEvents, firstKept, batch)
  return deleted
}

/** Deletes sums by hour that no report shows any more, in batches. It stops early when the signal aborts. */
export async function deleteOldHours({ db, clock }: Pick<RetentionDeps, 'db' | 'clock'>, signal: AbortSignal): Promise<void> {
  const firstKept = istDay(clock.nowMs() - (hourDaysKept - 1) * dayMs)
  for (const deletion of deleteOldHourSums) for (let count = batch; count === batch && !signal.aborted; ) count = await db.exec(deletion, firstKept, batch)
}

async function drop(db: Db, name: string, log: Log): Promise<void> {
  try {
    await db.script(dropPartitionSql(name))
  } catch (error) {
    // A long read held the lock for longer than a flush may wait. The rows are then deleted individually, and the next run drops the partition.
    log.warn('usage_partition_not_dropped', { path: name, error })
  }
}
