/** Seller, buyer and item of an invoice. An invoice stores copies from its day, so later changes do not affect it. */
import { z } from 'zod'
import type { BuyerRow } from './invoice-queries.ts'
import { currentStateCode } from './tax/gst-states.ts'
import type { TaxKind, TaxParts } from './tax/invoice-tax.ts'

/** The operator's business from the configuration. */
export interface Seller {
  readonly name: string
  readonly addressLines: readonly string[]
  /** Null when the seller is not registered for GST. Such a seller may not charge tax. */
  readonly gstin: string | null
  /** First part of invoice numbers. */
  readonly prefix: string
  /** Service accounting code of the sold service. */
  readonly sac: string
  /** True when invoices name the buyer's GSTIN. This is the setting GST_BUSINESS_INVOICES. */
  readonly namesBuyerGstin: boolean
}

export const sellerSnapshot = z.object({ name: z.string(), lines: z.array(z.string()), gstin: z.string().nullable() })
export const buyerSnapshot = z.object({
  name: z.string(),
  /** The name in the address, when it differs from `name`. */
  attention: z.string().nullable(),
  /** Street, then city with its PIN code. */
  lines: z.array(z.string()),
  /** Name of the state, as the buyer's address has it. */
  state: z.string().nullable(),
  stateCode: z.string().nullable(),
  country: z.string().nullable(),
  gstin: z.string().nullable(),
})
export const itemSnapshot = z.object({ description: z.string(), sac: z.string(), gstPercent: z.int() })

export type SellerSnapshot = z.output<typeof sellerSnapshot>
export type BuyerSnapshot = z.output<typeof buyerSnapshot>
export type ItemSnapshot = z.output<typeof itemSnapshot>

/** An issued invoice with all data of its page. */
export interface InvoiceDocument extends TaxParts {
  readonly number: string
  readonly paymentId: string
  readonly issuedAt: Date
  readonly seller: SellerSnapshot
  readonly buyer: BuyerSnapshot
  readonly item: ItemSnapshot
  /** Code of the GST state list. Empty when neither party has a state. */
  readonly placeOfSupply: string
  readonly kind: TaxKind
}

/** Returns the current code of the state in a GSTIN. Returns null without a GSTIN. */
export function stateOfGstin(gstin: string | null): string | null {
  return gstin === null ? null : currentStateCode(gstin.slice(0, 2))
}

/**
 * Returns the buyer with the data of today. The name is the legal name, otherwise the name in the billing address, otherwise the name of the
 * organisation. Without a billing address, the invoice has no address.
 */
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
