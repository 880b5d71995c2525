/** Rules that must always hold for payments, invoices and promo codes. `brigade doctor` and the tests check them. */
import type { Queryable } from '../../platform/db/db.ts'
import { inrTextOf } from '../../platform/values/money.ts'
import {
  violationsOfBonuses,
  violationsOfCaptures,
  violationsOfPromos,
  violationsOfReturns,
  violationsOfSeries,
  violationsOfUncaptured,
} from './invariant-queries.ts'

/**
 * Checks the database and returns one sentence for each broken rule. An empty list means that all rules hold:
 * - Every captured payment has one credit, one invoice and one paid order of the same amount.
 * - There is no credit, invoice or paid order without a captured payment.
 * - The numbers of an invoice series have no gap.
 * - The counter of a promo code is the number of its redemptions, and a redemption has one credit of its bonus.
 * - For a payment with returns, the ledger has taken back the returned amount and its share of the bonus.
 * The rule that the balance is the sum of the ledger is checked with the other counters, not here.
 */
export async function checkBillingInvariants(db: Queryable): Promise<string[]> {
  const found: string[] = []
  for (const { paymentId, amountUinr, ledger, invoices, invoicedUinr, paid } of await db.many(violationsOfCaptures))
    found.push(
      `Payment ${paymentId} was captured with ₹${inrTextOf(amountUinr)}: ₹${inrTextOf(ledger)} credited, ${invoices} invoices over ₹${inrTextOf(invoicedUinr)}, its order ${paid ? 'paid' : 'not paid'}.`,
    )
  for (const { what, ref } of await db.many(violationsOfUncaptured)) found.push(`The ${what} ${ref} has no captured payment.`)
  for (const { series, last, count, highest } of await db.many(violationsOfSeries))
    found.push(`Invoice series ${series} is at ${last}, with ${count} invoices up to ${highest}: a hole.`)
  for (const { code, counted, found: there } of await db.many(violationsOfPromos))
    found.push(`Promo code ${code} counts ${counted} redemptions, there are ${there}.`)
  for (const { orgId, code, credited, bonus } of await db.many(violationsOfBonuses))
    found.push(`Promo code ${code} gave organisation ${orgId} ₹${inrTextOf(credited ?? 0n)}, its redemption says ₹${inrTextOf(bonus ?? 0n)}.`)
  for (const { paymentId, goneUinr, returnedUinr, takenUinr } of await db.many(violationsOfReturns))
    found.push(
      `Of payment ${paymentId} ₹${inrTextOf(goneUinr)} went back: it says ₹${inrTextOf(returnedUinr)} with the bonus, and the ledger has taken ₹${inrTextOf(takenUinr)}.`,
    )
  return found
}
