/** The documents of an organisation: its invoices, and receipts of its payments. */
import type { Db } from '../../../platform/db/db.ts'
import { fail } from '../../../platform/errors.ts'
import { istDay } from '../../../platform/values/ist-time.ts'
import { buyerSnapshot, type InvoiceDocument, itemSnapshot, sellerSnapshot, stateOfGstin } from './invoice-parties.ts'
import { findInvoice, type InvoiceRow, listInvoices } from './invoice-queries.ts'
import type { Receipt } from './pages/receipt-page.ts'
import { findReceipt } from './receipt-queries.ts'
import { inrOfPaise, taxKindOf } from './tax/invoice-tax.ts'

/** An invoice in a list. Amounts are rupees. */
export interface InvoiceEntry {
  readonly number: string
  readonly payment_id: string
  /** The day in IST. */
  readonly date: string
  readonly issued_at: string
  readonly total_inr: number
  readonly taxable_inr: number
  readonly cgst_inr: number
  readonly sgst_inr: number
  readonly igst_inr: number
  /** Code of the GST state list. Null when neither party has a state. */
  readonly place_of_supply: string | null
}

export interface InvoicePage {
  readonly invoices: readonly InvoiceEntry[]
  readonly next_before: string | null
}

export class BillingDocuments {
  readonly #db: Db
  constructor({ db }: { readonly db: Db }) {
    this.#db = db
  }

  /** Returns invoices, newest first. `before` is the `next_before` of an earlier page. */
  async list(orgId: number, before: string | null, limit: number): Promise<InvoicePage> {
    const rows = await this.#db.many(listInvoices, orgId, before, limit + 1)
    const shown = rows.slice(0, limit)
    return { invoices: shown.map(entryOf), next_before: rows.length > limit ? (shown.at(-1)?.number ?? null) : null }
  }

  /** Returns the invoice of a payment. Throws `not_found` when the payment has no invoice in this organisation. */
  async invoice(orgId: number, paymentId: string): Promise<InvoiceDocument> {
    const row = await this.#db.maybe(findInvoice, orgId, storable(paymentId))
    if (row === null) throw noSuchPayment()
    const seller = sellerSnapshot.parse(row.seller)
    const kind = taxKindOf(stateOfGstin(seller.gstin), row.placeOfSupply)
    return { ...row, seller, buyer: buyerSnapshot.parse(row.buyer), item: itemSnapshot.parse(row.item), kind }
  }

  /** Returns the receipt of a payment. Throws `not_found` when it is not a captured payment of this organisation. */
  async receipt(orgId: number, paymentId: string): Promise<Receipt> {
    const row = await this.#db.maybe(findReceipt, orgId, storable(paymentId))
    if (row === null) throw noSuchPayment()
    return { ...row, seller: sellerSnapshot.parse(row.seller), buyer: buyerSnapshot.parse(row.buyer) }
  }
}

const noSuchPayment = () => fail('not_found', { message: 'No captured payment of this organisation has that id. GET /me/invoices lists them.' })

/** Returns the id if it has the form of a payment id: printable ASCII. Throws `not_found` for other texts, which the database may not accept. */
function storable(paymentId: string): string {
  if (!/^[!-~]{1,100}$/.test(paymentId)) throw noSuchPayment()
  return paymentId
}

function entryOf(row: InvoiceRow): InvoiceEntry {
  return {
    number: row.number,
    payment_id: row.paymentId,
    date: istDay(row.issuedAt.getTime()),
    issued_at: row.issuedAt.toISOString(),
    total_inr: inrOfPaise(row.totalPaise),
    taxable_inr: inrOfPaise(row.taxablePaise),
    cgst_inr: inrOfPaise(row.cgstPaise),
    sgst_inr: inrOfPaise(row.sgstPaise),
    igst_inr: inrOfPaise(row.igstPaise),
    place_of_supply: row.placeOfSupply === '' ? null : row.placeOfSupply,
  }
}
