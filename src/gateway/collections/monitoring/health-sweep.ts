/** What is old of canaries becomes sums of days, and in the end nothing. */
import type { Db } from '../../../platform/db/db.ts'
import { compactHours, deleteOldCanaries, deleteOldChecks, deleteOldHealth } from '../canaries/canary-queries.ts'

/** Pause between two sweeps. */
export const healthSweepMs = 3600_000
const dayMs = 24 * 3600_000
/** Whole days whose hours are kept: a week to the hour, with the days that its ends touch. */
const hourDays = 9
/** The longest span of a report, with the day that its beginning touches. */
const healthDays = 92
const checkDaysMin = 3

/** One sweep over all collections. `windowMs`: what alerts look at. */
export async function sweepHealth(db: Db, nowMs: number, windowMs: number, signal: AbortSignal): Promise<void> {
  const today = Math.floor(nowMs / dayMs) * dayMs
  await db.exec(compactHours, new Date(today - hourDays * dayMs))
  if (signal.aborted) return
  await db.exec(deleteOldHealth, new Date(today - healthDays * dayMs))
  await db.exec(deleteOldCanaries, new Date(today - healthDays * dayMs))
  await db.exec(deleteOldChecks, new Date(nowMs - Math.max(checkDaysMin * dayMs, 2 * windowMs)))
}
