/** Refunds and disputes of payments. */
import { statement } from '../../platform/db/db.ts'

export interface ReturnRow {
  readonly returnId: string
  readonly paymentId: string
  readonly kind: 'refund' | 'dispute'
}

/**
 * Records a report about a return. Returns a row only when the report is newer than the recorded one. A report that a dispute is won or lost (rank 2
 * or 3) counts as newer than every other report about that dispute. A return never moves to another payment.
 */
export const putReturn = statement<
  [
    returnId: string,
    orgId: number,
    orderId: string,
    paymentId: string,
    kind: string,
    amountUinr: bigint,
    takes: boolean,
    event: string,
    toldAt: Date,
    rank: number,
    at: Date,
  ],
  { returnId: string }
>(
  'billing.put_return',
  `insert into payment_returns as r (return_id, org_id, order_id, payment_id, kind, amount_uinr, takes, event, told_at, rank, created_at, changed_at)
   values ($1::text, $2::int, $3::text, $4::text, $5::text, $6::bigint, $7::boolean, $8::text, $9::timestamptz, $10::smallint, $11::timestamptz, $11::timestamptz)
   on conflict (return_id) do update set amount_uinr = excluded.amount_uinr, takes = excluded.takes, event = excluded.event, told_at = excluded.told_at,
     rank = excluded.rank, changed_at = excluded.changed_at
   where r.payment_id = excluded.payment_id and r.kind = excluded.kind and ((excluded.kind = 'dispute' and excluded.rank >= 2), excluded.told_at, excluded.rank) > ((r.kind = 'dispute' and r.rank >= 2), r.told_at, r.rank)
   returning return_id as "returnId"`,
)

/** Finds the order of a payment by the payment's id. */
export const orderOfPayment = statement<[paymentId: string], { orderId: string }>(
  'billing.order_of_payment',
  `select order_id as "orderId" from payments where payment_id = $1::text`,
)

export interface ReturnsOfPayment {
  readonly amountUinr: bigint
  readonly bonusUinr: bigint
  readonly returnedUinr: bigint
  readonly returnedBonusUinr: bigint
  /** Sum of all returns that take money. It may exceed the paid amount. */
  readonly goneUinr: bigint
}

/** Reads a captured payment and the sum of its returns. Returns no row for a payment that was never credited. The caller has locked the order. */
export const findReturns = statement<[orgId: number, paymentId: string], ReturnsOfPayment>(
  'billing.find_returns',
  `select p.amount_uinr as "amountUinr", p.bonus_uinr as "bonusUinr", p.returned_uinr as "returnedUinr", p.returned_bonus_uinr as "returnedBonusUinr",
     coalesce((select sum(r.amount_uinr) from payment_returns r where r.payment_id = p.payment_id and r.takes), 0)::bigint as "goneUinr"
   from payments p where p.org_id = $1::int and p.payment_id = $2::text and p.status = 'captured'`,
)

export const setReturned = statement<[orgId: number, paymentId: string, returnedUinr: bigint, returnedBonusUinr: bigint]>(
  'billing.set_returned',
  `update payments set returned_uinr = $3::bigint, returned_bonus_uinr = $4::bigint where org_id = $1::int and payment_id = $2::text`,
)

/** Counts one more movement of money for a return, and returns the number of movements. */
export const countMove = statement<[returnId: string], { moves: number; kind: 'refund' | 'dispute' }>(
  'billing.count_move',
  `update payment_returns set moves = moves + 1 where return_id = $1::text returning moves as "moves", kind as "kind"`,
)

/** The returns of a payment that were reported before it was credited, oldest first. */
export const listReturns = statement<[paymentId: string], ReturnRow>(
  'billing.list_returns',
  `select return_id as "returnId", payment_id as "paymentId", kind as "kind" from payment_returns where payment_id = $1::text order by created_at, return_id`,
)
