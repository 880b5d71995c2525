import { shortMoney } from '../../../ui/format/numbers.ts'

/** Texts of the form that sets a budget. */
export const formText = {
  amount: 'Budget a month',
  strict: 'Strict',
  strictHint: 'Every call first holds the most that it can cost, so that spending never passes the budget. Long calls are refused earlier.',
  save: 'Save the budget',
  saved: (name: string, inr: number): string => `The budget of ${name} is ${shortMoney(inr)} a month.`,
  lifted: (name: string): string => `${name} has no budget of its own any more.`,
  overtaken: (before: string, now: string): string => `Somebody changed this budget from ${before} to ${now} while you typed. Save to replace it with yours.`,
  takeTheirs: (amount: string): string => `Take ${amount}`,
} as const
