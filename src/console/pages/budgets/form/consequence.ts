import { addDays, daysInMonth, dayText, istDay, monthStart } from '../../../ui/format/dates.ts'
import { shortMoney } from '../../../ui/format/numbers.ts'

/** What a budget binds. */
export type BudgetScope = 'org' | 'team' | 'workspace' | 'member' | 'key' | 'agent'

/** The time after which a budget starts again. */
export type BudgetPeriod = 'ever' | 'month' | 'week' | 'day'

/** A budget of one scope, or the place for one. */
export interface BoundBudget {
  readonly scope: BudgetScope
  /** Null for the organisation. */
  readonly id: number | null
  readonly name: string
  /** Null: no limit. */
  readonly capInr: number | null
  readonly spentInr: number
  /** Reserved by running calls. */
  readonly heldInr?: number
  /** Of calls whose end is not known yet. */
  readonly inDoubtInr?: number
  /** Default: the month. */
  readonly period?: BudgetPeriod
  /** Left out: the page does not know, and does not change it. */
  readonly isStrict?: boolean
}

/** Returns the calls that a budget binds, in words. */
function callsOf({ scope, name }: Pick<BoundBudget, 'scope' | 'name'>): string {
  switch (scope) {
    case 'org':
    case 'team':
      return 'every call of the organisation'
    case 'workspace':
      return `every call with a key of ${name}`
    case 'member':
      return `every call by ${name}`
    case 'key':
      return `every call with ${name}`
    case 'agent':
      return `every call of ${name} and its children`
  }
}

/** Writes the day on which the running month has ended in India. */
export function resetDay(nowMs: number): string {
  const start = monthStart(istDay(nowMs))
  return dayText(addDays(start, daysInMonth(start)))
}

/** Returns the words for the end of a period. Only the month of India is known here: the others follow the time zone of the organisation's budgets. */
function untilText(period: BudgetPeriod, nowMs: number): string {
  switch (period) {
    case 'month':
      return ` until ${resetDay(nowMs)} (midnight in India)`
    case 'week':
      return ' until the week has ended'
    case 'day':
      return ' until the day has ended'
    case 'ever':
      return ' until somebody raises it'
  }
}

/** What happens with a limit, and whether it stops calls now or lifts a limit. */
export interface Consequence {
  readonly tone: 'quiet' | 'warn'
  readonly text: string
}

/** Returns in one or two sentences what happens when a budget has this limit. Null is no limit. */
export function consequenceOf(budget: BoundBudget, limitInr: number | null, nowMs: number): Consequence {
  const { capInr, spentInr, heldInr = 0, inDoubtInr = 0 } = budget
  const calls = callsOf(budget)
  if (limitInr === null)
    return {
      tone: capInr === null ? 'quiet' : 'warn',
      text: `${capInr === null ? '' : `This lifts the limit of ${shortMoney(capInr)}. `}Without a limit, this budget refuses no call. Other budgets that apply still do.`,
    }
  const until = untilText(budget.period ?? 'month', nowMs)
  if (limitInr <= spentInr) return { tone: 'warn', text: `${shortMoney(spentInr)} is already spent, so the gateway refuses ${calls}${until}.` }
  const left = limitInr - spentInr - heldInr - inDoubtInr
  if (left <= 0) return { tone: 'warn', text: `Running calls hold what is left, so the gateway refuses ${calls} that is new until they end.` }
  return {
    tone: 'quiet',
    text: `${shortMoney(left)} of ${shortMoney(limitInr)} is left. When it is used up, the gateway refuses ${calls}${until}.`,
  }
}
