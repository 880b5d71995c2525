/** Ids and amounts of the payment provider. */
import { z } from 'zod'

/** An id of an order or payment. It is printable and has no `|`, because the text that the checkout signs separates ids with `|`. */
export const providerId = z.string().regex(/^[!-{}~]{1,100}$/, 'expected an id as the payment provider gave it')

/** The only currency of top-ups. */
export const topUpCurrency = 'INR'
export const uinrPerPaisa = 10_000n
const paisePerRupee = 100

/** Bounds of one top-up in whole rupees, both inclusive. */
export const topUpInr = { min: 100, max: 100_000 } as const

/** Converts whole rupees to paise, the provider's unit. */
export function paiseOfInr(inr: number): number {
  return inr * paisePerRupee
}
