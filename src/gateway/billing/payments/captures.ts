/**
 * The effect of a payment on an organisation's money. The checkout in the browser and the provider's webhook both report the same payment. Reports
 * come in any order, concurrently and repeatedly. The first report makes all changes in one transaction. Later reports change nothing. Decision 0299
 * says why.
 */
import type { Tx } from '../../../platform/db/db.ts'
import type { NewsItem } from '../../../platform/db/db-control-log.ts'
import type { Ids } from '../../../platform/values/ids.ts'
import { inrFromUinr } from '../../../platform/values/money.ts'
import { balanceOf, creditIn } from '../../limits/budgets/prepaid.ts'
import { emit, eventId } from '../../webhooks/events/events.ts'
import type { Seller } from '../invoices/invoice-parties.ts'
import { issueInvoice } from '../invoices/invoices.ts'
import { enqueueReceipt } from '../invoices/receipt-mail.ts'
import { rearmLowBalance } from '../low-balance.ts'
import { type Redeemed, redeemIn } from '../promotions/promo-codes.ts'
import { type ReturnDeps, returnsBeforeCredit } from '../returns.ts'
import { topUpCurrency, uinrPerPaisa } from './payment-ids.ts'
import { complain, findPayment, lockOrder, markPaid, type OrderRow, type PaymentRow, putPayment, setMethod, setPromo } from './payment-queries.ts'

export interface CaptureDeps extends ReturnDeps {
  readonly ids: Ids
  readonly seller: Seller
  /**
   * Turns the trial keys of the organisation into standard keys. It runs before the credit, because a change of a key locks the key first and then
   * its budget.
   */
  readonly promote: (tx: Tx, orgId: number, at: Date) => Promise<readonly NewsItem[]>
}

/** The provider's data of a payment. */
export interface ReportedPayment {
  /** In the smallest unit of the currency. */
  readonly amountPaise: number
  readonly currency: string
  readonly method: string | null
}

export interface PaymentFacts {
  readonly orderId: string
  readonly paymentId: string
  /** Null when the only proof is the signature of the checkout, because this signature covers only the ids. */
  readonly reported: ReportedPayment | null
  readonly at: Date
}

/** Why a payment was not credited. The operator checks the payment and returns the money or credits it manually. */
export type FlagReason = 'amount_differs' | 'currency_differs' | 'order_paid_already'

/** The result of the promo code of an order. */
export interface PromoResult {
  readonly code: string
  readonly bonusUinr: bigint
  /** The reason why there was no bonus. */
  readonly refusal: string | null
}

export type CaptureOutcome =
  /** The order does not exist, or the payment belongs to another order. Nothing has changed. */
  | { readonly kind: 'unknown' }
  | { readonly kind: 'credited'; readonly orgId: number; readonly balanceUinr: bigint; readonly promo: PromoResult | null }
  /** The payment was credited before. `complaint` is set when this is the first report that contradicts the payment. */
  | {
      readonly kind: 'repeated'
      readonly orgId: number
      readonly balanceUinr: bigint
      readonly promo: PromoResult | null
      readonly complaint: FlagReason | null
    }
  /** The payment has not been credited, neither now nor before. */
  | { readonly kind: 'flagged'; readonly orgId: number; readonly balanceUinr: bigint; readonly reason: string; readonly isNew: boolean }

export interface Captured {
  readonly outcome: CaptureOutcome
  /** News for the control log. The caller appends and applies them. */
  readonly news: readonly NewsItem[]
}

/**
 * Credits a payment once with all its consequences, or returns why the payment is not credited. The caller has already checked a signature of the
 * provider.
 */
export async function captureIn(deps: CaptureDeps, tx: Tx, facts: PaymentFacts): Promise<Captured> {
  const { orderId, paymentId, reported } = facts
  const order = await tx.maybe(lockOrder, orderId)
  if (order === null) return { outcome: { kind: 'unknown' }, news: [] }
  const { orgId } = order
  const payment = await tx.maybe(findPayment, paymentId)
  if (payment !== null && payment.orderId !== orderId) return { outcome: { kind: 'unknown' }, news: [] }
  if (payment?.status === 'captured') return { outcome: await repeated(tx, order, payment, facts), news: [] }
  if (payment?.status === 'flagged') {
    const reason = payment.reason ?? 'flagged'
    return { outcome: { kind: 'flagged', orgId, balanceUinr: await balanceOf(tx, orgId), reason, isNew: false }, news: [] }
  }
  const reason = order.status === 'paid' ? 'order_paid_already' : mismatchOf(order, reported)
  if (reason === null) return await credit(deps, tx, order, facts)
  const isNew = await put(tx, order, facts, 'flagged', reason)
  if (!isNew) return { outcome: { kind: 'unknown' }, news: [] }
  return { outcome: { kind: 'flagged', orgId, balanceUinr: await balanceOf(tx, orgId), reason, isNew }, news: [] }
}

/** Records that a payment failed. A captured or flagged payment keeps its state. Returns true when the failure was not recorded before. */
export async function failIn(tx: Tx, facts: PaymentFacts, reason: string): Promise<boolean> {
  const order = await tx.maybe(lockOrder, facts.orderId)
  return order !== null && (await put(tx, order, facts, 'failed', reason))
}

function mismatchOf(order: OrderRow, reported: ReportedPayment | null): FlagReason | null {
  if (reported === null) return null
  if (reported.currency !== topUpCurrency) return 'currency_differs'
  return BigInt(reported.amountPaise) * uinrPerPaisa === order.amountUinr ? null : 'amount_differs'
}

async function put(tx: Tx, order: OrderRow, { orderId, paymentId, reported, at }: PaymentFacts, status: string, reason: string | null): Promise<boolean> {
  const amountUinr = reported === null ? order.amountUinr : BigInt(reported.amountPaise) * uinrPerPaisa
  const { currency, method } = reported ?? { currency: topUpCurrency, method: null }
  return (await tx.exec(putPayment, order.orgId, paymentId, orderId, status, amountUinr, currency, method, reason, at)) === 1
}

async function repeated(tx: Tx, order: OrderRow, payment: PaymentRow, { paymentId, reported }: PaymentFacts): Promise<CaptureOutcome> {
  const { orgId, promoCode } = order
  if (reported?.method) await tx.exec(setMethod, orgId, paymentId, reported.method)
  const mismatch = mismatchOf(order, reported)
  const isNew = mismatch !== null && (await tx.exec(complain, orgId, paymentId, mismatch)) === 1
  const { bonusUinr, reason } = payment
  // The column also holds reasons that are only for the operator.
  const refusal = reason?.startsWith('promo_') ? reason : null
  const promo = promoCode === null ? null : { code: promoCode, bonusUinr, refusal }
  return { kind: 'repeated', orgId, balanceUinr: await balanceOf(tx, orgId), promo, complaint: isNew ? mismatch : null }
}

/**
 * Credits a payment. Every transaction takes its locks in this order: order, organisation and keys, prepaid counter, promo code, invoice series,
 * outboxes.
 */
async function credit(deps: CaptureDeps, tx: Tx, order: OrderRow, facts: PaymentFacts): Promise<Captured> {
  const { orgId, amountUinr, promoCode } = order
  const { orderId, paymentId, at } = facts
  const promoted = await deps.promote(tx, orgId, at)
  const topUp = await creditIn(tx, { orgId, amountUinr, reason: 'topup', ref: paymentId, paymentId, at })
  if (!topUp.credited || !(await put(tx, order, facts, 'captured', null)))
    throw new Error('a payment is in the ledger, or under another order, without being captured')
  await tx.exec(markPaid, orgId, orderId, at)
  const bonus = promoCode === null ? null : await redeemIn(tx, { orgId, code: promoCode, topupUinr: amountUinr, paymentId, at })
  const promo = promoCode === null || bonus === null ? null : promoResult(promoCode, bonus)
  const balanceUinr = topUp.balanceUinr + (promo?.bonusUinr ?? 0n)
  if (promo !== null) await tx.exec(setPromo, orgId, paymentId, promo.code, promo.bonusUinr, promo.refusal)
  await bookTopUp(deps, tx, { orgId, orderId, paymentId, amountUinr, bonusUinr: promo?.bonusUinr ?? 0n, balanceUinr, at })
  const returned = await returnsBeforeCredit(deps, tx, orgId, paymentId, at)
  const leftUinr = returned.length === 0 ? balanceUinr : await balanceOf(tx, orgId)
  return { outcome: { kind: 'credited', orgId, balanceUinr: leftUinr, promo }, news: [...topUp.news, ...returned, ...promoted] }
}

/** A top-up that is in the ledger of its organisation. */
export interface TopUp {
  readonly orgId: number
  readonly orderId: string
  readonly paymentId: string
  readonly amountUinr: bigint
  readonly bonusUinr: bigint
  /** The balance after the amount and the bonus were added. */
  readonly balanceUinr: bigint
  readonly at: Date
}

/** Does what follows a credited top-up: issues the invoice, sends the events and the receipt, and arms the low-balance warning again. */
export async function bookTopUp(deps: CaptureDeps, tx: Tx, topUp: TopUp): Promise<void> {
  const { orgId, orderId, paymentId, amountUinr, bonusUinr, balanceUinr, at } = topUp
  await rearmLowBalance(tx, orgId, balanceUinr)
  const invoice = await issueInvoice(tx, deps.seller, { orgId, paymentId, amountUinr, at })
  const atMs = at.getTime()
  const captured = {
    payment_id: paymentId,
    order_id: orderId,
    amount_inr: inrFromUinr(amountUinr),
    bonus_inr: inrFromUinr(bonusUinr),
    balance_inr: inrFromUinr(balanceUinr),
  }
  await emit(tx, { id: eventId(deps.ids, atMs), orgId, type: 'payment.captured', atMs, data: captured })
  const issued = { invoice_number: invoice.number, payment_id: paymentId, total_inr: inrFromUinr(amountUinr) }
  await emit(tx, { id: eventId(deps.ids, atMs), orgId, type: 'invoice.created', atMs, data: issued })
  await enqueueReceipt(tx, deps.mail, { orgId, paymentId, amountUinr, at, invoiceNumber: invoice.number, seller: deps.seller.name, baseUrl: deps.baseUrl() })
}

function promoResult(code: string, redeemed: Redeemed): PromoResult {
  return redeemed.refusal === null ? { code, bonusUinr: redeemed.bonusUinr, refusal: null } : { code, bonusUinr: 0n, refusal: redeemed.refusal }
}
