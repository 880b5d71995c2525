/** The periods of budgets. Pure. */

/** The periods that a budget can have, the longest first. A call that several budgets of a scope refuse gets the refusal of the longest. */
export const budgetPeriods = ['ever', 'month', 'week', 'day'] as const
export type BudgetPeriod = (typeof budgetPeriods)[number]

/** Returns true when a text names a period. */
export const isBudgetPeriod = (text: string): text is BudgetPeriod => (budgetPeriods as readonly string[]).includes(text)

/** The periods that end. */
export type EndingPeriod = Exclude<BudgetPeriod, 'ever'>

/** The time zone of budgets of an organisation that has set none. It is also the zone of usage reports. */
export const defaultZone = 'Asia/Kolkata'

/** A period of a calendar, for example one day. */
export interface PeriodWindow {
  /** The name of its counter: `2026-11-23`, `2026-W48`, `2026-11` or `ever`. In another zone than the default, `@` and the zone follow. */
  readonly name: string
  /** The end in Unix milliseconds. Infinity for `ever`. */
  readonly endsAtMs: number
}

/** The window of a budget that never starts again. */
export const ever: PeriodWindow = { name: 'ever', endsAtMs: Number.POSITIVE_INFINITY }

/** Returns the period that the name of a counter is of. */
export function periodOfName(name: string): BudgetPeriod {
  if (name === ever.name) return 'ever'
  if (/^\d{4}-W/.test(name)) return 'week'
  return /^\d{4}-\d{2}-\d{2}/.test(name) ? 'day' : 'month'
}

const adjectives: Readonly<Record<BudgetPeriod, string>> = { ever: 'total', month: 'monthly', week: 'weekly', day: 'daily' }

/** Returns the word before `budget` in a message. */
export const adjectiveOf = (period: BudgetPeriod): string => adjectives[period]
