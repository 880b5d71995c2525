/** What canaries may cost the operator: rounds that an organisation asks for, canaries of one founder's organisations and of the installation. */
import type { Db, Tx } from '../../../platform/db/db.ts'
import { takeUse } from './canary-queries.ts'

/** Whose round it is. */
export interface CanaryHolder {
  readonly orgId: number
  /** A number for its founder: the canaries of all organisations of one founder count together. */
  readonly holder: number
}

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
/** In place of a founder: all of them together. */
const everyone = 0

/**
 * Counts in the database, so for all processes together, and apart from collections: deleting one starts no new count. One row for each
 * founder or organisation and kind; a row of a span that is over counts from zero.
 */
export class CanaryBudget {
  readonly #options: CanaryBudgetOptions
  constructor(options: CanaryBudgetOptions) {
    this.#options = options
  }

  /** Takes room for the canaries of a round; null: there was. What a founder is refused costs the others nothing. */
  async take(db: Db | Tx, { orgId, holder }: CanaryHolder, canaries: number, isAsked: boolean, nowMs: number): Promise<Exhausted | null> {
    const { orgDayMax, dayMax } = this.#options
    if (isAsked && !(await taken(db, orgId, 'asked', nowMs, minuteMs, 1, askedRoundsMax))) return 'minute'
    if (!(await taken(db, holder, 'canaries', nowMs, dayMs, canaries, orgDayMax))) return 'org-day'
    return (await taken(db, everyone, 'canaries', nowMs, dayMs, canaries, dayMax)) ? null : 'day'
  }
}

/** Whether the organisation may have one more mail of an alert sent today. */
export const takeAlertMail = (tx: Tx, orgId: number, nowMs: number): Promise<boolean> => taken(tx, orgId, 'mails', nowMs, dayMs, 1, alertMailsMax)

async function taken(db: Db | Tx, holder: number, kind: string, nowMs: number, spanMs: number, count: number, max: number): Promise<boolean> {
  const startsAt = new Date(Math.floor(nowMs / spanMs) * spanMs)
  return (await db.maybe(takeUse, holder, kind, startsAt, spanMs / 1000, BigInt(count), BigInt(max))) !== null
}
