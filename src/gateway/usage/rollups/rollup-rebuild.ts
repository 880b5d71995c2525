/**
 * Computes the sums of usage by day again from the events. This is needed after a rolling upgrade from a version that kept no sums. The last events
 * of the old processes are then missing in the sums.
 */

import type { Clock } from '../../../platform/clock.ts'
import type { Db } from '../../../platform/db/db.ts'
import { fail } from '../../../platform/errors.ts'
import type { Flushable } from '../../../platform/flushable.ts'
import { istDay, startOfIstDayMs } from '../../../platform/values/ist-time.ts'
import { hourDaysKept } from '../events/usage-retention.ts'
import { findKeptFrom } from '../events/usage-retention-queries.ts'
import { disagreeingDays, lockSums, rebuildDay, rebuildHours } from './rollup-rebuild-queries.ts'

const dayMs = 24 * 3600_000

/** A day on which sums and events disagree. */
export interface Disagreement {
  /** IST day. */
  readonly day: string
  readonly events: number
  readonly summed: number
}

export interface UsageSumsDeps {
  readonly db: Db
  readonly clock: Clock
  /** How many days single events are kept. The sums of older days cannot be computed again. */
  readonly keepDays: number
  /** Writes the records that this process has settled to the database. */
  readonly journal: Flushable
}

/** Checks and repairs the sums of usage, for the operator. */
export class UsageRollups {
  readonly #deps: UsageSumsDeps
  constructor(deps: UsageSumsDeps) {
    this.#deps = deps
  }

  /** Returns the days among the last `days` on which sums and events disagree. */
  async disagreements(days: number): Promise<readonly Disagreement[]> {
    const nowMs = this.#deps.clock.nowMs()
    const [from, oldest] = [istDay(nowMs - (days - 1) * dayMs), await this.#oldest()]
    const rows = await this.#deps.db.many(disagreeingDays, from < oldest ? oldest : from, istDay(nowMs))
    return rows.map(({ day, events, summed }) => ({ day, events: Number(events), summed: Number(summed) }))
  }

  /**
   * Computes the wrong sums in a span of IST days again. Both ends of the span are included. The default span is all days whose events are kept. Each
   * day is one transaction. Flushes wait during the transaction, and calls continue. Returns the days that were wrong. A day with deleted events does
   * not change. Throws `bad_request`.
   */
  async rebuild(from: string | undefined, to: string | undefined): Promise<readonly Disagreement[]> {
    const { db, clock, keepDays, journal } = this.#deps
    const oldest = await this.#oldest()
    const [first, last] = [from ?? oldest, to ?? istDay(clock.nowMs())]
    for (const day of [first, last])
      if (startOfIstDayMs(day) === null) throw fail('bad_request', { message: `"${day.slice(0, 40)}" is no calendar day; write YYYY-MM-DD.` })
    if (first > last) throw fail('bad_request', { message: '"from" lies after "to".' })
    if (first < oldest)
      throw fail('bad_request', {
        message: `Events from before ${oldest} are not all kept (USAGE_KEEP_DAYS is ${keepDays}), so sums of older days cannot be made again; begin at ${oldest} or later.`,
      })
    await journal.flushNow()
    const wrong = await db.many(disagreeingDays, first, last)
    const firstHours = istDay(clock.nowMs() - (hourDaysKept - 1) * dayMs)
    for (const { day } of wrong)
      await db.tx(async tx => {
        await tx.one(lockSums)
        // Retention takes the same lock to record what it will delete, so this check is valid until the sums of the day are computed.
        if (day < ((await tx.one(findKeptFrom)).keptFrom ?? day)) return
        for (const part of day < firstHours ? rebuildDay : [...rebuildDay, ...rebuildHours]) await tx.exec(part, day)
      })
    return wrong.map(({ day, events, summed }) => ({ day, events: Number(events), summed: Number(summed) }))
  }

  /** Returns the first IST day whose events are all kept. USAGE_KEEP_DAYS may have been smaller before. */
  async #oldest(): Promise<string> {
    const { db, clock, keepDays } = this.#deps
    const oldest = istDay(clock.nowMs() - (keepDays - 1) * dayMs)
    const { keptFrom } = await db.one(findKeptFrom)
    return keptFrom !== null && keptFrom > oldest ? keptFrom : oldest
  }
}
