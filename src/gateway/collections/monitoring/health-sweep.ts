/** Sums old canaries into days, and later deletes the days. */
import type { Db } from '../../../platform/db/db.ts'
import { compactHours, deleteOldCanaries, deleteOldChecks, deleteOldHealth } from '../canaries/canary-queries.ts'

/** Pause between two sweeps. */
export const healthSweepMs = 3600_000
const dayMs = 24 * 3600_000
/** Number of whole days for which hours are stored: one week of reports by the hour, and the partial days at both ends. */
const hourDays = 9
/** The longest span of a report, including the partial day at its beginning. */
const healthDays = 92
const checkDaysMin = 3

/** Runs one sweep over all collections. `windowMs` is the window of alerts. */
export async function sweepHealth(db: Db, nowMs: number, windowMs: number, signal: AbortSignal): Promise<void> {
  const today = Math.floor(nowMs / dayMs) * dayMs
  await db.exec(compactHours, new Date(today - hourDays * dayMs))
  if (signal.aborted) return
  await db.exec(deleteOldHealth, new Date(today - healthDays * dayMs))
  await db.exec(deleteOldCanaries, new Date(today - healthDays * dayMs))
  await db.exec(deleteOldChecks, new Date(nowMs - Math.max(checkDaysMin * dayMs, 2 * windowMs)))
}
