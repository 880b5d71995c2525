import { statement } from '../../../platform/db/db.ts'
import type { TaxParts } from './tax/invoice-tax.ts'

/**
 * Takes the next number of a series, and locks the series until the transaction ends. A concurrent transaction waits and continues from the committed
 * number, so a rollback leaves no hole.
 */
export const takeNumber = statement<[series: string], { seq: number }>(
  'billing.take_invoice_number',
  `insert into invoice_series (series, last) values ($1::text, 1)
   on conflict (series) do update set last = invoice_series.last + 1
   returning last as "seq"`,
)

export const findInvoiceNumber = statement<[orgId: number, paymentId: string], { number: string }>(
  'billing.find_invoice_number',
  `select number from invoices where org_id = $1::int and payment_id = $2::text`,
)

export interface BuyerRow {
  readonly orgName: string
  readonly legalName: string | null
  readonly gstin: string | null
  readonly name: string | null
  readonly line1: string | null
  readonly line2: string | null
  readonly city: string | null
  readonly state: string | null
  readonly stateCode: string | null
  readonly pincode: string | null
  readonly country: string | null
}

/** Reads the current data of the buyer. */
export const findBuyer = statement<[orgId: number], BuyerRow>(
  'billing.find_invoice_buyer',
  `select o.name as "orgName", b.legal_name as "legalName", b.gstin as "gstin", a.name as "name", a.line1 as "line1", a.line2 as "line2",
     a.city as "city", a.state as "state", a.state_code as "stateCode", a.pincode as "pincode", a.country as "country"
   from orgs o left join billing_accounts b on b.org_id = $1::int left join billing_addresses a on a.org_id = $1::int
   where o.id = $1::int`,
)

export const insertInvoice = statement<
  [
    orgId: number,
    number: string,
    paymentId: string,
    series: string,
    seq: number,
    issuedAt: Date,
    seller: string,
    buyer: string,
    item: string,
    placeOfSupply: string,
    totalPaise: bigint,
    taxablePaise: bigint,
    cgstPaise: bigint,
    sgstPaise: bigint,
    igstPaise: bigint,
  ]
>(
  'billing.insert_invoice',
  `insert into invoices (org_id, number, payment_id, series, seq, issued_at, seller, buyer, item, place_of_supply,
     total_paise, taxable_paise, cgst_paise, sgst_paise, igst_paise)
   values ($1::int, $2::text, $3::text, $4::text, $5::int, $6::timestamptz, $7::jsonb, $8::jsonb, $9::jsonb, $10::text,
     $11::bigint, $12::bigint, $13::bigint, $14::bigint, $15::bigint)`,
)

const columns = `number, payment_id as "paymentId", issued_at as "issuedAt", seller, buyer, item, place_of_supply as "placeOfSupply", total_paise as "totalPaise",
  taxable_paise as "taxablePaise", cgst_paise as "cgstPaise", sgst_paise as "sgstPaise", igst_paise as "igstPaise"`

export interface InvoiceRow extends TaxParts {
  readonly number: string
  readonly paymentId: string
  readonly issuedAt: Date
  readonly seller: unknown
  readonly buyer: unknown
  readonly item: unknown
  readonly placeOfSupply: string
}

/** Lists invoices, newest first. With a number, the list has only invoices below that number. The list is empty for an unknown number. */
export const listInvoices = statement<[orgId: number, below: string | null, limit: number], InvoiceRow>(
  'billing.list_invoices',
  `select ${columns} from invoices
   where org_id = $1::int
     and ($2::text is null
       or (issued_at, series, seq) < (select b.issued_at, b.series, b.seq from invoices b where b.org_id = $1::int and b.number = $2::text))
   order by issued_at desc, series desc, seq desc
   limit $3::int`,
)

export const findInvoice = statement<[orgId: number, paymentId: string], InvoiceRow>(
  'billing.find_invoice',
  `select ${columns} from invoices where org_id = $1::int and payment_id = $2::text`,
)
