/**
 * Limits what canaries can cost the operator. There are limits on the rounds that an organisation requests, on the canaries of one founder's
 * organisations, and on the canaries of the installation.
 */
import type { Db, Tx } from '../../../platform/db/db.ts'
import { takeUse } from './canary-queries.ts'

/** The organisation and founder of a round. */
export interface CanaryHolder {
  readonly orgId: number
  /** A number for the founder. The canaries of all organisations of one founder are counted together. */
  readonly holder: number
}

export interface CanaryBudgetOptions {
  /** The setting CANARIES_ORG_MAX. */
  readonly orgDayMax: number
  /** The setting CANARIES_MAX. */
  readonly dayMax: number
}

/** The limit that is used up. */
export type Exhausted = 'minute' | 'org-day' | 'day'

/** Maximum number of rounds that an organisation may request in one minute of the clock. */
export const askedRoundsMax = 20
/** Maximum number of alert mails of an organisation per day (UTC). */
const alertMailsMax = 200
const minuteMs = 60_000
const dayMs = 24 * 3600_000
/** Takes the place of a founder in the count for the whole installation. */
const everyone = 0

/**
 * Counts canaries in the database, so all processes share the counts. The counts do not belong to collections, so deleting a collection resets no
 * count. There is one row for each founder or organisation and each kind. A row of a past span counts as zero.
 */
export class CanaryBudget {
  readonly #options: CanaryBudgetOptions
  constructor(options: CanaryBudgetOptions) {
    this.#options = options
  }

  /**
   * Counts the canaries of a round. Returns null when there is room, otherwise the limit that is used up. Canaries that the founder's own limit
   * refuses do not count for the installation.
   */
  async take(db: Db | Tx, { orgId, holder }: CanaryHolder, canaries: number, isAsked: boolean, nowMs: number): Promise<Exhausted | null> {
    const { orgDayMax, dayMax } = this.#options
    if (isAsked && !(await taken(db, orgId, 'asked', nowMs, minuteMs, 1, askedRoundsMax))) return 'minute'
    if (!(await taken(db, holder, 'canaries', nowMs, dayMs, canaries, orgDayMax))) return 'org-day'
    return (await taken(db, everyone, 'canaries', nowMs, dayMs, canaries, dayMax)) ? null : 'day'
  }
}

/** Counts one alert mail of the organisation. Returns false when the limit of the day is used up. */
export const takeAlertMail = (tx: Tx, orgId: number, nowMs: number): Promise<boolean> => taken(tx, orgId, 'mails', nowMs, dayMs, 1, alertMailsMax)

async function taken(db: Db | Tx, holder: number, kind: string, nowMs: number, spanMs: number, count: number, max: number): Promise<boolean> {
  const startsAt = new Date(Math.floor(nowMs / spanMs) * spanMs)
  return (await db.maybe(takeUse, holder, kind, startsAt, spanMs / 1000, BigInt(count), BigInt(max))) !== null
}
