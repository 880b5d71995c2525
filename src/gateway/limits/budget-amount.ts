/** Amounts of monthly budgets as people write them. Pure. */
import { fail } from '../../platform/errors.ts'
import { uinrFromInr } from '../../platform/money.ts'

/** Largest budget in rupees: below it rupees and micro-rupees convert both ways without loss. */
const budgetInrMax = 1_000_000_000

/** The cap that a wish of so many rupees a month means; null: none, because null and 0 clear. Throws `bad_request`. */
export function capOfInr(monthlyBudgetInr: number | null): bigint | null {
  if (monthlyBudgetInr !== null && !(monthlyBudgetInr >= 0 && monthlyBudgetInr <= budgetInrMax))
    throw fail('bad_request', { message: `monthly_budget_inr must be a number from 0 to ${budgetInrMax}, or null.` })
  if (monthlyBudgetInr === null || monthlyBudgetInr === 0) return null
  const capUinr = uinrFromInr(monthlyBudgetInr)
  if (capUinr === 0n) throw fail('bad_request', { message: 'monthly_budget_inr is below a millionth of a rupee. Send 0 or null to clear the budget.' })
  return capUinr
}
