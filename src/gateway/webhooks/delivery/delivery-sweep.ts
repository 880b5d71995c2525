/** Deletes old deliveries and events. */
import type { Db, Statement } from '../../../platform/db/db.ts'
import { istDay, startOfIstDayMs } from '../../../platform/values/ist-time.ts'
import { deleteOldEvents, deleteSettledDeliveries } from './sweep-queries.ts'

/** Pause between two sweeps, in milliseconds. */
export const webhookSweepMs = 3600_000
const dayMs = 24 * 3600_000
/** Maximum number of rows that one statement deletes. It is also the maximum number of statements in one sweep. */
const batch = 5_000
const roundsMax = 200

/**
 * Deletes deliveries that were settled more than `keepDays` ago. Then deletes events of that age that have no deliveries left. Returns the number of
 * deleted rows.
 */
export async function sweepWebhooks(db: Db, nowMs: number, keepDays: number, signal?: AbortSignal): Promise<number> {
  const beforeMs = nowMs - keepDays * dayMs
  const monthStartMs = startOfIstDayMs(`${istDay(nowMs).slice(0, 8)}01`) ?? beforeMs
  const seconds = (ms: number): bigint => BigInt(Math.floor(ms / 1000))
  const deliveries = await inBatches(db, deleteSettledDeliveries, [new Date(beforeMs)], signal)
  return deliveries + (await inBatches(db, deleteOldEvents, [seconds(beforeMs), seconds(monthStartMs)], signal))
}

async function inBatches<P extends readonly (Date | bigint)[]>(
  db: Db,
  remove: Statement<readonly [...P, number], never>,
  params: P,
  signal: AbortSignal | undefined,
): Promise<number> {
  let count = 0
  for (let round = 0; round < roundsMax && !signal?.aborted; round++) {
    const deleted = await db.exec(remove, ...params, batch)
    count += deleted
    if (deleted < batch) break
  }
  return count
}
