/** What the console shows of usage at a glance: by key today and in the last 30 days, and the last 30 days by model. */

import type { Clock } from '../../../platform/clock.ts'
import type { Db } from '../../../platform/db/db.ts'
import type { Flushable } from '../../../platform/flushable.ts'
import { type KeySumsRow, sumByDayAndModel, sumByKey } from './usage-queries.ts'
import { lastDays, usualDays, weeksIn } from './usage-span.ts'
import { type Figures, figuresOf, sumOf, type TotalsRow } from './usage-totals.ts'

/** Keys without any use that the overview shows, the newest. Those with use are all there. */
const unusedKeysMax = 1_000

interface KeyUse {
  today: Figures
  last_30_days: Figures
}

export interface UsageByKey {
  /** First and last IST day of the 30. */
  from: string
  to: string
  totals: KeyUse
  /** `key_id` is null for what ran without a key. `revoked` is null there. */
  keys: (KeyUse & { key_id: number | null; name: string | null; prefix: string | null; revoked: boolean | null })[]
}

export interface UsageByDay {
  from: string
  to: string
  days: (Figures & { day: string; model: string })[]
}

export interface UsageOverviewDeps {
  readonly db: Db
  readonly clock: Clock
  /** Brings what this process has settled into the database. */
  readonly journal: Flushable
}

/** The overviews of one organisation. What this process served before the call is in them. */
export class UsageOverview {
  readonly #deps: UsageOverviewDeps

  constructor(deps: UsageOverviewDeps) {
    this.#deps = deps
  }

  /** By key, most used first: today in India and the 30 days that end with it. The totals are the sums of the keys. */
  async byKey(orgId: number): Promise<UsageByKey> {
    const { db, clock, journal } = this.#deps
    await journal.flushNow()
    const { from, to } = lastDays(usualDays, clock.nowMs())
    const { headTo, tailFrom } = weeksIn({ from, to })
    const rows = await db.many(sumByKey, orgId, from, headTo, tailFrom, to, unusedKeysMax)
    const todays = rows.map(todayOf)
    return {
      from,
      to,
      totals: { today: figuresOf(sumOf(todays)), last_30_days: figuresOf(sumOf(rows)) },
      keys: rows.map(row => ({
        key_id: row.keyId,
        name: row.name,
        prefix: row.prefix,
        revoked: row.keyId === null ? null : row.revoked,
        today: figuresOf(todayOf(row)),
        last_30_days: figuresOf(row),
      })),
    }
  }

  /** The last 30 IST days by day and model, oldest day first. What was not used is left out. */
  async byDay(orgId: number): Promise<UsageByDay> {
    const { db, clock, journal } = this.#deps
    await journal.flushNow()
    const { from, to } = lastDays(usualDays, clock.nowMs())
    const rows = await db.many(sumByDayAndModel, orgId, from, to)
    return { from, to, days: rows.map(row => ({ day: row.day, model: row.model, ...figuresOf(row) })) }
  }
}

function todayOf(row: KeySumsRow): TotalsRow {
  return {
    requests: row.todayRequests,
    errors: row.todayErrors,
    promptTokens: row.todayPromptTokens,
    completionTokens: row.todayCompletionTokens,
    valueUinr: row.todayValueUinr,
    costUinr: row.todayCostUinr,
    cachedTokens: row.todayCachedTokens,
    cacheWriteTokens: row.todayCacheWriteTokens,
  }
}
