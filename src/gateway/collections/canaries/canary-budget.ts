/** What canaries may cost the operator: rounds that an organisation asks for, canaries of an organisation and of the installation. */
import type { Db, Tx } from '../../../platform/db/db.ts'
import { takeUse } from './canary-queries.ts'

export interface CanaryBudgetOptions {
  /** CANARIES_ORG_MAX. */
  readonly orgDayMax: number
  /** CANARIES_MAX. */
  readonly dayMax: number
}

/** What is used up. */
export type Exhausted = 'minute' | 'org-day' | 'day'

/** Rounds that an organisation begins in a minute of the clock at most by asking. */
export const askedRoundsMax = 20
/** Mails of alerts that an organisation may cause in a day (UTC). */
const alertMailsMax = 200
const minuteMs = 60_000
const dayMs = 24 * 3600_000
/** In place of an organisation: all of them together. */
const everyone = 0

/**
 * Counts in the database, for all processes together. The count does not depend on collections, so deleting one starts no new count. There is one row
 * for each organisation and kind; a row of an ended span counts from zero.
 */
export class CanaryBudget {
  readonly #options: CanaryBudgetOptions
  constructor(options: CanaryBudgetOptions) {
    this.#options = options
  }

  /** Takes room for the canaries of a round; null: there was. What an organisation is refused costs the others nothing. */
  async take(db: Db | Tx, orgId: number, canaries: number, isAsked: boolean, nowMs: number): Promise<Exhausted | null> {
    const { orgDayMax, dayMax } = this.#options
    if (isAsked && !(await taken(db, orgId, 'asked', nowMs, minuteMs, 1, askedRoundsMax))) return 'minute'
    if (!(await taken(db, orgId, 'canaries', nowMs, dayMs, canaries, orgDayMax))) return 'org-day'
    return (await taken(db, everyone, 'canaries', nowMs, dayMs, canaries, dayMax)) ? null : 'day'
  }
}

/** Whether the organisation may have one more mail of an alert sent today. */
export const takeAlertMail = (tx: Tx, orgId: number, nowMs: number): Promise<boolean> => taken(tx, orgId, 'mails', nowMs, dayMs, 1, alertMailsMax)

async function taken(db: Db | Tx, orgId: number, kind: string, nowMs: number, spanMs: number, count: number, max: number): Promise<boolean> {
  const startsAt = new Date(Math.floor(nowMs / spanMs) * spanMs)
  return (await db.maybe(takeUse, orgId, kind, startsAt, spanMs / 1000, BigInt(count), BigInt(max))) !== null
}
