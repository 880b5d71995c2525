import { shortMoney } from '../../../ui/format/numbers.ts'
import type { BudgetPeriod } from './consequence.ts'

const each: Readonly<Record<BudgetPeriod, string>> = { ever: 'in total', month: 'a month', week: 'a week', day: 'a day' }

/** Texts of the form that sets a budget. */
export const formText = {
  amount: (period: BudgetPeriod): string => `Budget ${each[period]}`,
  strict: 'Strict',
  strictHint: 'Every call first holds the most that it can cost, so that spending never passes the budget. Long calls are refused earlier.',
  save: 'Save the budget',
  saved: (name: string, inr: number, period: BudgetPeriod): string => `The budget of ${name} is ${shortMoney(inr)} ${each[period]}.`,
  lifted: (name: string, period: BudgetPeriod): string => `${name} has no budget ${period === 'month' ? 'of its own' : each[period]} any more.`,
  overtaken: (before: string, now: string): string => `Somebody changed this budget from ${before} to ${now} while you typed. Save to replace it with yours.`,
  takeTheirs: (amount: string): string => `Take ${amount}`,
} as const
