/** Converts the amounts of monthly budgets in requests. Pure. */
import { fail } from '../../../platform/errors.ts'
import { uinrFromInr } from '../../../platform/values/money.ts'

/** The largest budget in rupees. Up to it rupees and micro-rupees convert both ways without loss. */
const budgetInrMax = 1_000_000_000

/** The words for an amount in the message of a refusal. */
export interface AmountWords {
  /** The field with the amount. Default: `monthly_budget_inr`. */
  readonly field?: string
  /** The action that stops all calls, in words. */
  readonly toStop: string
}

/**
 * Returns the cap for a monthly budget in rupees. Null means no limit. Zero is refused, because some callers mean "nothing more" by it and
 * others "no limit". So a number never removes a limit. Throws `bad_request`.
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

/** Returns the cap for POST /v1/me/agents/{id}/budget. It is the only endpoint whose contract lets 0 clear a budget like null. Throws `bad_request`. */
export const clearingCapOfInr = (budgetInr: number | null): bigint | null =>
  capOfInr(budgetInr === 0 ? null : budgetInr, { toStop: 'pause or revoke the agent' })
