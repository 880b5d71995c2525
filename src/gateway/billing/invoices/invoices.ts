/** Invoices: one for each captured top-up, with the next number of its series. */
import type { Tx } from '../../../platform/db/db.ts'
import { invoiceNumber, seriesOf } from './invoice-number.ts'
import { buyerOf, type ItemSnapshot, type Seller, type SellerSnapshot, stateOfGstin } from './invoice-parties.ts'
import { findBuyer, findInvoiceNumber, insertInvoice, takeNumber } from './invoice-queries.ts'
import { gstPercent, paiseOf, splitTax, taxKindOf } from './tax/invoice-tax.ts'

export interface InvoicedPayment {
  readonly orgId: number
  /** The id of a row of `payments`. */
  readonly paymentId: string
  /** The paid amount including tax: a whole number of paise. */
  readonly amountUinr: bigint
  /** When the payment was captured. It is the date of the invoice and determines the financial year. */
  readonly at: Date
}

/**
 * Issues the invoice of a payment, in the transaction that captures the payment. Numbers are consecutive: when a transaction rolls back, the next
 * transaction gets its number. Later transactions of the same series wait until this transaction ends. A payment that already has an invoice keeps
 * it. Throws RangeError for an amount that no payment can have.
 */
export async function issueInvoice(tx: Tx, seller: Seller, { orgId, paymentId, amountUinr, at }: InvoicedPayment): Promise<{ number: string }> {
  const totalPaise = paiseOf(amountUinr)
  const earlier = await tx.maybe(findInvoiceNumber, orgId, paymentId)
  if (earlier !== null) return earlier
  const buyer = buyerOf(await tx.one(findBuyer, orgId), seller)
  const sellerState = stateOfGstin(seller.gstin)
  // Section 12(2) of the IGST Act: the place of supply is the state of the buyer's registration, otherwise of the buyer's address, otherwise of the
  // seller.
  const placeOfSupply = stateOfGstin(buyer.gstin) ?? buyer.stateCode ?? sellerState ?? ''
  const parts = splitTax(totalPaise, taxKindOf(sellerState, placeOfSupply))
  const series = seriesOf(seller.prefix, at.getTime())
  const { seq } = await tx.one(takeNumber, series)
  const number = invoiceNumber(series, seq)
  const snapshot: SellerSnapshot = { name: seller.name, lines: [...seller.addressLines], gstin: seller.gstin }
  const item: ItemSnapshot = { description: serviceDescription, sac: seller.sac, gstPercent: seller.gstin === null ? 0 : Number(gstPercent) }
  await tx.exec(
    insertInvoice,
    orgId,
    number,
    paymentId,
    series,
    seq,
    at,
    JSON.stringify(snapshot),
    JSON.stringify(buyer),
    JSON.stringify(item),
    placeOfSupply,
    parts.totalPaise,
    parts.taxablePaise,
    parts.cgstPaise,
    parts.sgstPaise,
    parts.igstPaise,
  )
  return { number }
}

const serviceDescription = 'Access to AI models through a hosted gateway (prepaid credit)'
