/** Reads the payment provider's reports about payments: from webhooks whose signature was checked, and from replies to requests. */
import { z } from 'zod'
import type { ReportedReturn } from '../returns.ts'
import type { ReportedPayment } from './captures.ts'
import { providerId, topUpCurrency, uinrPerPaisa } from './payment-ids.ts'

export interface PaymentEvent {
  readonly kind: 'captured' | 'failed'
  readonly orderId: string
  readonly paymentId: string
  readonly reported: ReportedPayment
  /** The error code of the payment. */
  readonly failure: string
}

/** A bound above every possible amount of a payment. Larger values would not fit into the columns. */
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
 * Returns the event of a payment of an order. Returns null for every other event. Also returns null for payments without an order, because the
 * provider's account may serve other programs than this gateway. Returns 'unreadable' for a payment of an order whose data no payment of this gateway
 * can have. It does not read free text, names and addresses of payers.
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
    reported: { amountPaise: amount, currency, method },
    failure: error_reason ?? error_code?.toLowerCase() ?? 'payment_failed',
  }
}

/**
 * The provider's list has these fields in addition to those of its webhooks. A payment that was returned in whole or in part does not match: the
 * operator decides about it.
 */
const captured = entity.extend({ status: z.literal('captured'), amount_refunded: z.literal(0).nullish() })

/** Returns a captured, unreturned payment of an order from the provider's list. Returns null for every other payment. */
export function capturedPaymentOf(orderId: string, json: unknown): Pick<PaymentEvent, 'orderId' | 'paymentId' | 'reported'> | null {
  const facts = captured.safeParse(json)
  if (!facts.success || facts.data.order_id !== orderId) return null
  const { id, amount, currency, method } = facts.data
  return { orderId, paymentId: id, reported: { amountPaise: amount, currency, method } }
}

const kinds: Readonly<Record<string, PaymentEvent['kind'] | undefined>> = Object.assign(Object.create(null), {
  'payment.captured': 'captured',
  'payment.failed': 'failed',
})

/** An event of a refund or dispute. `orderId` is null when the event names no order. The payment then determines the order. */
export type ReturnEvent = Omit<ReportedReturn, 'orderId'> & { readonly orderId: string | null }

const returnFacts = z.object({ id: providerId, payment_id: providerId, amount: z.int().min(1).max(amountMax), currency: z.string(), phase: code })
const returnEnvelope = z.object({
  created_at: z.int().min(0).max(100_000_000_000).catch(0),
  payload: z.object({
    refund: z.object({ entity: z.unknown() }).optional().catch(undefined),
    dispute: z.object({ entity: z.unknown() }).optional().catch(undefined),
    payment: z
      .object({ entity: z.object({ order_id: providerId.nullable().catch(null) }) })
      .optional()
      .catch(undefined),
  }),
})

/**
 * Returns the event of a refund or dispute. Returns null for every other event, for a bank's request for documents, and for events that change
 * nothing about the money. Returns 'unreadable' for a refund or dispute whose data no payment of this gateway can have, such as another currency.
 */
export function returnEventOf(json: unknown): ReturnEvent | 'unreadable' | null {
  const said = envelope.safeParse(json)
  const event = said.success ? said.data.event : ''
  const known = returnEvents[event]
  if (known === undefined) return null
  const read = returnEnvelope.safeParse(json)
  const { kind, takes, rank } = known
  const facts = returnFacts.safeParse(read.success ? read.data.payload[kind]?.entity : null)
  if (!read.success || !facts.success || facts.data.currency !== topUpCurrency) return 'unreadable'
  const { id, payment_id: paymentId, amount, phase } = facts.data
  if (kind === 'dispute' && takes && event !== 'payment.dispute.lost' && moneylessPhases.includes(phase ?? '')) return null
  return {
    returnId: id,
    kind,
    orderId: read.data.payload.payment?.entity.order_id ?? null,
    paymentId,
    amountUinr: BigInt(amount) * uinrPerPaisa,
    takes,
    event,
    toldAt: new Date(read.data.created_at * 1000),
    rank,
  }
}

/** Phases of a dispute in which the payer's bank asks for documents and does not take money. */
const moneylessPhases: readonly string[] = ['retrieval', 'fraud']

/** The effect of an event on the money. Of two events in the same second, the one with the higher rank counts. */
const returnEvents: Readonly<Record<string, { readonly kind: 'refund' | 'dispute'; readonly takes: boolean; readonly rank: number } | undefined>> =
  Object.assign(Object.create(null), {
    'refund.created': { kind: 'refund', takes: true, rank: 0 },
    'refund.processed': { kind: 'refund', takes: true, rank: 1 },
    'refund.failed': { kind: 'refund', takes: false, rank: 2 },
    'payment.dispute.created': { kind: 'dispute', takes: true, rank: 0 },
    'payment.dispute.closed': { kind: 'dispute', takes: false, rank: 1 },
    'payment.dispute.won': { kind: 'dispute', takes: false, rank: 2 },
    'payment.dispute.lost': { kind: 'dispute', takes: true, rank: 3 },
  })
