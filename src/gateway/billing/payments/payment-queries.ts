/** Orders at the payment provider and their payments. */
import { statement } from '../../../platform/db/db.ts'

export const hasAddress = statement<[orgId: number], { found: number }>(
  'billing.has_address',
  `select 1 as "found" from billing_addresses where org_id = $1::int`,
)

/** Returns no row when an order with this id exists. */
export const insertOrder = statement<
  [orgId: number, orderId: string, provider: string, amountUinr: bigint, promoCode: string | null, keyId: string, createdBy: number, at: Date]
>(
  'billing.insert_order',
  `insert into payment_orders (org_id, order_id, provider, amount_uinr, promo_code, key_id, created_by, created_at)
   values ($1::int, $2::text, $3::text, $4::bigint, $5::text, $6::text, $7::int, $8::timestamptz) on conflict (order_id) do nothing`,
)

export const findOrder = statement<[orgId: number, orderId: string], { found: number }>(
  'billing.find_order',
  `select 1 as "found" from payment_orders where org_id = $1::int and order_id = $2::text`,
)

export interface OrderRow {
  readonly orgId: number
  readonly amountUinr: bigint
  readonly promoCode: string | null
  readonly status: 'created' | 'paid'
}

/** Locks an order, so that all other reports about the order wait until this transaction ends. */
export const lockOrder = statement<[orderId: string], OrderRow>(
  'billing.lock_order',
  `select org_id as "orgId", amount_uinr as "amountUinr", promo_code as "promoCode", status as "status"
   from payment_orders where order_id = $1::text for no key update`,
)

export const markPaid = statement<[orgId: number, orderId: string, at: Date]>(
  'billing.mark_order_paid',
  `update payment_orders set status = 'paid', paid_at = $3::timestamptz where org_id = $1::int and order_id = $2::text`,
)

export interface PaymentRow {
  readonly orderId: string
  readonly status: 'captured' | 'failed' | 'flagged'
  readonly reason: string | null
  readonly bonusUinr: bigint
}

/** Finds the payment in any organisation, so that the caller can recognise a payment that belongs to another order. */
export const findPayment = statement<[paymentId: string], PaymentRow>(
  'billing.find_payment',
  `select order_id as "orderId", status as "status", reason as "reason", bonus_uinr as "bonusUinr"
   from payments where payment_id = $1::text`,
)

/** Records the state of a payment. Changes nothing and returns no row for a captured or flagged payment and for a payment of another order. */
export const putPayment = statement<
  [
    orgId: number,
    paymentId: string,
    orderId: string,
    status: string,
    amountUinr: bigint,
    currency: string,
    method: string | null,
    reason: string | null,
    at: Date,
  ]
>(
  'billing.put_payment',
  `insert into payments as p (org_id, payment_id, order_id, status, amount_uinr, currency, method, reason, created_at, captured_at)
   values ($1::int, $2::text, $3::text, $4::text, $5::bigint, $6::text, $7::text, $8::text, $9::timestamptz,
     case when $4::text = 'captured' then $9::timestamptz end)
   on conflict (payment_id) do update set status = excluded.status, amount_uinr = excluded.amount_uinr, currency = excluded.currency,
     method = coalesce(excluded.method, p.method), reason = excluded.reason, captured_at = excluded.captured_at
   where p.org_id = excluded.org_id and p.order_id = excluded.order_id and p.status = 'failed' and excluded.status <> 'failed'`,
)

/** The result of the order's promo code: its bonus, or why there is none. */
export const setPromo = statement<[orgId: number, paymentId: string, code: string, bonusUinr: bigint, reason: string | null]>(
  'billing.set_payment_promo',
  `update payments set promo_code = $3::text, bonus_uinr = $4::bigint, reason = $5::text where org_id = $1::int and payment_id = $2::text`,
)

/**
 * Lists unpaid orders for which a request to the provider is due. The first request is due when an order is old enough. Each next request is due when
 * the age of the order has doubled since the last request. So an abandoned order costs few requests.
 */
export const listUnpaid = statement<[provider: string, keyId: string, from: Date, to: Date, at: Date, limit: number], { orgId: number; orderId: string }>(
  'billing.list_unpaid',
  `select org_id as "orgId", order_id as "orderId" from payment_orders
   where status = 'created' and provider = $1::text and key_id = $2::text and created_at between $3::timestamptz and $4::timestamptz
     and (asked_at is null or asked_at + (asked_at - created_at) <= $5::timestamptz)
   order by coalesce(asked_at, created_at), order_id limit $6::int`,
)

export const noteAsked = statement<[orgId: number, orderId: string, at: Date]>(
  'billing.note_asked',
  `update payment_orders set asked_at = $3::timestamptz where org_id = $1::int and order_id = $2::text`,
)

/** Sets the payment method. The checkout does not name the method, but the webhook that comes later does. */
export const setMethod = statement<[orgId: number, paymentId: string, method: string]>(
  'billing.set_payment_method',
  `update payments set method = $3::text where org_id = $1::int and payment_id = $2::text and method is null`,
)

/** Records a contradiction about a credited payment. Returns no row when it was recorded before. */
export const complain = statement<[orgId: number, paymentId: string, reason: string]>(
  'billing.complain_of_payment',
  `update payments set reason = $3::text where org_id = $1::int and payment_id = $2::text and reason is distinct from $3::text`,
)
