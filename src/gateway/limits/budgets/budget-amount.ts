/** Amounts of monthly budgets as people write them. Pure. */
import { fail } from '../../../platform/errors.ts'
import { uinrFromInr } from '../../../platform/values/money.ts'

/** Largest budget in rupees: below it rupees and micro-rupees convert both ways without loss. */
const budgetInrMax = 1_000_000_000

/** How an amount is spoken of when it is refused. */
export interface AmountWords {
  /** The field that holds it. Default: `monthly_budget_inr`. */
  readonly field?: string
  /** What somebody does who wants no more calls at all: an act, in words. */
  readonly toStop: string
}

/**
 * The cap that a request of so many rupees a month means; null: no limit. Zero is refused, because some mean "nothing more" by it and others
 * "no limit": a number never lifts a limit. Throws `bad_request`.
 */
export function capOfInr(budgetInr: number | null, { field = 'monthly_budget_inr', toStop }: AmountWords): bigint | null {
  if (budgetInr === null) return null
  if (!(budgetInr >= 0 && budgetInr <= budgetInrMax))
    throw fail('bad_request', { message: `${field} must be a number above 0 and up to ${budgetInrMax}, or null for no limit.` })
  const capUinr = uinrFromInr(budgetInr)
  if (capUinr === 0n)
    throw fail('bad_request', {
      message: `${field} must be a millionth of a rupee or more. Send null for no limit. To stop calls altogether, ${toStop}.`,
    })
  return capUinr
}

/** The same for the one address whose contract lets 0 clear a budget as null does: POST /v1/me/agents/{id}/budget. Throws `bad_request`. */
export const clearingCapOfInr = (budgetInr: number | null): bigint | null =>
  capOfInr(budgetInr === 0 ? null : budgetInr, { toStop: 'pause or revoke the agent' })
