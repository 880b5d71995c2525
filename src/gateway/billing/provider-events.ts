/** What the payment provider says of payments: in webhooks, read from bytes whose signature was checked, and when it is asked. */
import { z } from 'zod'
import type { PaymentTold } from './captures.ts'
import { providerId } from './payment-ids.ts'

export interface PaymentEvent {
  readonly kind: 'captured' | 'failed'
  readonly orderId: string
  readonly paymentId: string
  readonly told: PaymentTold
  /** Why it failed, as a code. */
  readonly failure: string
}

/** Above every amount that a payment has; what is larger would not fit into the columns. */
const amountMax = 100_000_000_000_000

const envelope = z.object({ event: z.string() })
const paymentEnvelope = z.object({ payload: z.object({ payment: z.object({ entity: z.looseObject({ order_id: z.string().min(1) }) }) }) })
const code = z
  .string()
  .regex(/^\w{1,60}$/)
  .nullable()
  .catch(null)
const entity = z.object({
  id: providerId,
  order_id: providerId,
  amount: z.int().min(0).max(amountMax),
  currency: z.string().regex(/^[A-Z]{3}$/),
  method: code,
  error_reason: code,
  error_code: code,
})

/**
 * The event of a payment of an order. Null for every other event and for payments without an order: an account of the provider may
 * serve more than this gateway. 'unreadable': of an order, with facts that no payment of ours has. Its own free text, names and
 * addresses of payers are not read.
 */
export function paymentEventOf(json: unknown): PaymentEvent | 'unreadable' | null {
  const said = envelope.safeParse(json)
  const kind = said.success ? kinds[said.data.event] : undefined
  const payment = paymentEnvelope.safeParse(json)
  if (kind === undefined || !payment.success) return null
  const facts = entity.safeParse(payment.data.payload.payment.entity)
  if (!facts.success) return 'unreadable'
  const { id, order_id, amount, currency, method, error_reason, error_code } = facts.data
  return {
    kind,
    orderId: order_id,
    paymentId: id,
    told: { amountPaise: amount, currency, method },
    failure: error_reason ?? error_code?.toLowerCase() ?? 'payment_failed',
  }
}

/** What stands in the provider's list beside what a webhook says. What was given back, whole or in part, is for the operator to weigh. */
const captured = entity.extend({ status: z.literal('captured'), amount_refunded: z.literal(0).nullish() })

/** A payment of that order that the provider has captured and kept, as it answers when it is asked. Null for every other. */
export function capturedPaymentOf(orderId: string, json: unknown): Pick<PaymentEvent, 'orderId' | 'paymentId' | 'told'> | null {
  const facts = captured.safeParse(json)
  if (!facts.success || facts.data.order_id !== orderId) return null
  const { id, amount, currency, method } = facts.data
  return { orderId, paymentId: id, told: { amountPaise: amount, currency, method } }
}

const kinds: Readonly<Record<string, PaymentEvent['kind'] | undefined>> = Object.assign(Object.create(null), {
  'payment.captured': 'captured',
  'payment.failed': 'failed',
})
