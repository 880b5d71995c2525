/** Payments that contradict their order, and the operator's decisions about them. */
import { statement } from '../../../platform/db/db.ts'

export interface FlaggedRow {
  readonly paymentId: string
  readonly orgId: number
  readonly orderId: string
  /** `captured`: the payment was credited on the proof of the checkout, and a later report contradicts it. */
  readonly status: 'captured' | 'failed' | 'flagged'
  readonly reason: string | null
  /** The amount in the smallest unit of the currency, times 10,000. For INR, this is micro-rupees. */
  readonly amountUinr: bigint
  readonly currency: string
  readonly method: string | null
  readonly createdAt: Date
  readonly settledAt: Date | null
  readonly orderUinr: bigint
  readonly orderStatus: 'created' | 'paid'
}

const columns = `p.payment_id as "paymentId", p.org_id as "orgId", p.order_id as "orderId", p.status, p.reason, p.amount_uinr as "amountUinr", p.currency, p.method,
  p.created_at as "createdAt", p.settled_at as "settledAt", o.amount_uinr as "orderUinr", o.status as "orderStatus"`

/** The statement lists the reasons that need a decision, because a credited payment also has a reason when its promo code gave no bonus. */
const needsLook = `p.settled_at is null and p.reason is not null and (p.status = 'flagged' or (p.status = 'captured' and p.reason in ('amount_differs', 'currency_differs')))`

export const listFlagged = statement<[orgId: number | null, limit: number], FlaggedRow>(
  'billing.list_flagged',
  `select ${columns} from payments p join payment_orders o on o.order_id = p.order_id
   where ${needsLook} and ($1::int is null or p.org_id = $1::int) order by p.created_at, p.payment_id limit $2::int`,
)

export const countFlagged = statement<[], { count: number }>('billing.count_flagged', `select count(*)::int as "count" from payments p where ${needsLook}`)

export const findForOperator = statement<[paymentId: string], FlaggedRow>(
  'billing.find_for_operator',
  `select ${columns} from payments p join payment_orders o on o.order_id = p.order_id where p.payment_id = $1::text`,
)

/** Keeps the reason, because it says why the operator had to decide. */
export const captureFlagged = statement<[orgId: number, paymentId: string, at: Date]>(
  'billing.capture_flagged',
  `update payments set status = 'captured', captured_at = $3::timestamptz, settled_at = $3::timestamptz
   where org_id = $1::int and payment_id = $2::text and status = 'flagged' and settled_at is null`,
)

export const settleFlagged = statement<[orgId: number, paymentId: string, at: Date]>(
  'billing.settle_flagged',
  `update payments p set settled_at = $3::timestamptz where p.org_id = $1::int and p.payment_id = $2::text and ${needsLook}`,
)
