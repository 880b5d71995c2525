/** The usage overview of the console: by key today and in the last 30 days, and the last 30 days by model. */

import type { Clock } from '../../../platform/clock.ts'
import type { Db } from '../../../platform/db/db.ts'
import type { Flushable } from '../../../platform/flushable.ts'
import { dayModelsMax } from '../events/bounded-names.ts'
import { type KeySumsRow, sumByDayAndModel, sumByKey } from './usage-queries.ts'
import { lastDays, usualDays, weeksIn } from './usage-span.ts'
import { type Figures, figuresOf, sumOf, type TotalsRow } from './usage-totals.ts'

/**
 * Maximum number of keys in the overview. Keys with usage come first, and the rest of them is one sum. ORG_KEYS counts no revoked key, so there may be any number
 * of keys with usage. Decision 0655 says why.
 */
const keysShownMax = 1_000

interface KeyUse {
  today: Figures
  last_30_days: Figures
}

export interface UsageByKey {
  /** First and last IST day of the 30 days. */
  from: string
  to: string
  totals: KeyUse
  /** For calls without a key, `key_id` and `revoked` are null. */
  keys: (KeyUse & { key_id: number | null; name: string | null; prefix: string | null; revoked: boolean | null })[]
  /** The sum of the keys that are not in `keys`, and their number. Null when all keys with usage are in `keys`. */
  other_keys: (KeyUse & { count: number }) | null
}

export interface UsageByDay {
  from: string
  to: string
  days: (Figures & { day: string; model: string })[]
}

export interface UsageOverviewDeps {
  readonly db: Db
  readonly clock: Clock
  /** Writes the records that this process has settled to the database. */
  readonly journal: Flushable
}

/** Computes overviews of the usage of an organisation. It flushes the journal first, so that every call that this process has settled is included. */
export class UsageOverview {
  readonly #deps: UsageOverviewDeps

  constructor(deps: UsageOverviewDeps) {
    this.#deps = deps
  }

  /** Returns usage by key, most used first: today in India, and the 30 days that end today. The totals are the sums of all keys. */
  async byKey(orgId: number): Promise<UsageByKey> {
    const { db, clock, journal } = this.#deps
    await journal.flushNow()
    const { from, to } = lastDays(usualDays, clock.nowMs())
    const { headTo, tailFrom } = weeksIn({ from, to })
    const rows = await db.many(sumByKey, orgId, from, headTo, tailFrom, to, keysShownMax)
    const todays = rows.map(todayOf)
    const others = rows.find(row => row.others > 0)
    return {
      from,
      to,
      totals: { today: figuresOf(sumOf(todays)), last_30_days: figuresOf(sumOf(rows)) },
      keys: rows
        .filter(row => row !== others)
        .map(row => ({ key_id: row.keyId, name: row.name, prefix: row.prefix, revoked: row.keyId === null ? null : row.revoked, ...useOf(row) })),
      other_keys: others === undefined ? null : { count: others.others, ...useOf(others) },
    }
  }

  /** Returns the last 30 IST days by day and model, oldest day first. After `dayModelsMax` models, all others share one name. Combinations without usage are absent. */
  async byDay(orgId: number): Promise<UsageByDay> {
    const { db, clock, journal } = this.#deps
    await journal.flushNow()
    const { from, to } = lastDays(usualDays, clock.nowMs())
    const rows = await db.many(sumByDayAndModel, orgId, from, to, dayModelsMax)
    return { from, to, days: rows.map(row => ({ day: row.day, model: row.model, ...figuresOf(row) })) }
  }
}

const useOf = (row: KeySumsRow): KeyUse => ({ today: figuresOf(todayOf(row)), last_30_days: figuresOf(row) })

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
