/** Who sells, who buys and what, as an invoice keeps them: copies of that day, which no later change reaches. */
import { z } from 'zod'
import type { BuyerRow } from './invoice-queries.ts'
import { currentStateCode } from './tax/gst-states.ts'
import type { TaxKind, TaxParts } from './tax/invoice-tax.ts'

/** The operator's business as the configuration names it. */
export interface Seller {
  readonly name: string
  readonly addressLines: readonly string[]
  /** Null: not registered for GST, which means that no tax may be charged. */
  readonly gstin: string | null
  /** First part of numbers. */
  readonly prefix: string
  /** Service accounting code of what is sold. */
  readonly sac: string
  /** The buyer's GSTIN is on invoices: GST_BUSINESS_INVOICES. */
  readonly namesBuyerGstin: boolean
}

export const sellerSnapshot = z.object({ name: z.string(), lines: z.array(z.string()), gstin: z.string().nullable() })
export const buyerSnapshot = z.object({
  name: z.string(),
  /** The person or place in the address, when it is not the name above. */
  attention: z.string().nullable(),
  /** Street, then city with its PIN code. */
  lines: z.array(z.string()),
  /** Name of the state as the buyer gave it. */
  state: z.string().nullable(),
  stateCode: z.string().nullable(),
  country: z.string().nullable(),
  gstin: z.string().nullable(),
})
export const itemSnapshot = z.object({ description: z.string(), sac: z.string(), gstPercent: z.int() })

export type SellerSnapshot = z.output<typeof sellerSnapshot>
export type BuyerSnapshot = z.output<typeof buyerSnapshot>
export type ItemSnapshot = z.output<typeof itemSnapshot>

/** An issued invoice, as its page shows it. */
export interface InvoiceDocument extends TaxParts {
  readonly number: string
  readonly paymentId: string
  readonly issuedAt: Date
  readonly seller: SellerSnapshot
  readonly buyer: BuyerSnapshot
  readonly item: ItemSnapshot
  /** Code of the state list; empty when neither party has a state. */
  readonly placeOfSupply: string
  readonly kind: TaxKind
}

/** The state of a registered business as it is coded today; null without a GSTIN. */
export function stateOfGstin(gstin: string | null): string | null {
  return gstin === null ? null : currentStateCode(gstin.slice(0, 2))
}

/** The buyer on this day. Without a billing address the organisation is named and the address is left out. */
export function buyerOf(row: BuyerRow, { namesBuyerGstin }: Pick<Seller, 'namesBuyerGstin'>): BuyerSnapshot {
  const name = row.legalName ?? row.name ?? row.orgName
  const place = [row.city, row.pincode].filter(part => part !== null).join(' ')
  return {
    name,
    attention: row.name === name ? null : row.name,
    lines: [row.line1, row.line2, place].filter((line): line is string => line !== null && line !== ''),
    state: row.state,
    stateCode: row.stateCode,
    country: row.country,
    gstin: namesBuyerGstin ? row.gstin : null,
  }
}
