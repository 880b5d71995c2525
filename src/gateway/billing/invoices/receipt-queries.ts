import { statement } from '../../../platform/db/db.ts'

/**
 * The recipients of payment mails: the active owners, and the billing address unless an owner has the same address. `reader` identifies the recipient
 * in the key that makes a mail unique.
 */
export const receiptReaders = statement<[orgId: number], { email: string; reader: string; orgName: string }>(
  'billing.receipt_readers',
  `with owners as materialized (
     select u.id, u.email from users u join org_members m on m.user_id = u.id
     where m.org_id = $1::int and m.role = 'owner' and m.status = 'active')
   select r.email as "email", r.reader as "reader", o.name as "orgName"
   from orgs o, (
     select email, id::text as reader from owners
     union all
     select b.billing_email, 'bills' from billing_accounts b
     where b.org_id = $1::int and b.billing_email is not null
       and not exists (select 1 from owners where lower(owners.email) = lower(b.billing_email))) r
   where o.id = $1::int
   order by r.reader`,
)

export interface ReceiptRow {
  readonly paymentId: string
  readonly orderId: string
  readonly amountUinr: bigint
  /** The bonus of a promo code, on top of the amount. 0 without a promo code. */
  readonly bonusUinr: bigint
  /** The method in the payment provider's own word. */
  readonly method: string | null
  readonly capturedAt: Date
  readonly invoiceNumber: string
  readonly seller: unknown
  readonly buyer: unknown
}

/** A captured payment with the parties of its invoice. */
export const findReceipt = statement<[orgId: number, paymentId: string], ReceiptRow>(
  'billing.find_receipt',
  `select p.payment_id as "paymentId", p.order_id as "orderId", p.amount_uinr as "amountUinr", p.bonus_uinr as "bonusUinr", p.method as "method",
     p.captured_at as "capturedAt", i.number as "invoiceNumber", i.seller as "seller", i.buyer as "buyer"
   from payments p join invoices i on i.org_id = p.org_id and i.payment_id = p.payment_id
   where p.org_id = $1::int and p.payment_id = $2::text and p.status = 'captured'`,
)
