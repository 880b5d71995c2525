/** Payments that do not match their order, in the form that the operator sees. */
import type { FlaggedRow } from '../../gateway/billing/payments/flagged-payments.ts'
import { inrFromUinr, inrTextOf } from '../../platform/values/money.ts'

export interface ShownFlagged {
  readonly payment_id: string
  readonly org_id: number
  readonly order_id: string
  readonly at: string
  readonly reason: string
  /** Null when the payment is in another currency. */
  readonly amount_inr: number | null
  readonly currency: string
  /** In the smallest unit of the currency. */
  readonly amount: number
  readonly order_inr: number
  readonly credited: boolean
  readonly why: string
  readonly what_to_do: string
}

const uinrPerSmallest = 10_000n

export function flaggedView(row: FlaggedRow): ShownFlagged {
  const isInr = row.currency === 'INR'
  return {
    payment_id: row.paymentId,
    org_id: row.orgId,
    order_id: row.orderId,
    at: row.createdAt.toISOString(),
    reason: row.reason ?? 'flagged',
    amount_inr: isInr ? inrFromUinr(row.amountUinr) : null,
    currency: row.currency,
    amount: Number(row.amountUinr / uinrPerSmallest),
    order_inr: inrFromUinr(row.orderUinr),
    credited: row.status === 'captured',
    why: whyOf(row),
    what_to_do: whatToDo(row),
  }
}

function whyOf({ reason, status, orderUinr }: FlaggedRow): string {
  const order = `₹${inrTextOf(orderUinr)}`
  if (status === 'captured')
    return `credited with the ${order} of its order; the provider told another ${reason === 'currency_differs' ? 'currency' : 'amount'} later`
  switch (reason) {
    case 'order_paid_already':
      return 'its order was paid by another payment before'
    case 'currency_differs':
      return `its order is over ${order}, in rupees`
    default:
      return `its order is over ${order}`
  }
}

function whatToDo({ paymentId, orgId, status, currency }: FlaggedRow): string {
  const settle = `brigade admin payments settle --payment ${paymentId}`
  if (status === 'captured')
    return `look it up at the provider; brigade admin credit correct --org ${orgId} --inr=<difference> --ref ${paymentId}; then ${settle}`
  if (currency !== 'INR') return `give it back at the provider, or brigade admin credit grant --org ${orgId} --inr <rupees> --ref ${paymentId}; then ${settle}`
  return `credit it: brigade admin payments credit --payment ${paymentId}; or give it back at the provider, then ${settle}`
}
