/** Payments that the operator must decide about: payments that were not credited, and credited payments that a later report contradicts. */
import type { Clock } from '../../../platform/clock.ts'
import type { Db, Tx } from '../../../platform/db/db.ts'
import type { ControlLog } from '../../../platform/db/db-control-log.ts'
import { fail } from '../../../platform/errors.ts'
import { balanceOf, creditIn } from '../../limits/budgets/prepaid.ts'
import { returnsBeforeCredit } from '../returns.ts'
import { bookTopUp, type CaptureDeps } from './captures.ts'
import { captureFlagged, countFlagged, type FlaggedRow, findForOperator, listFlagged, settleFlagged } from './flagged-queries.ts'
import { topUpCurrency } from './payment-ids.ts'
import { lockOrder, markPaid } from './payment-queries.ts'

export type { FlaggedRow } from './flagged-queries.ts'

export interface FlaggedPaymentsDeps {
  readonly db: Db
  readonly clock: Clock
  readonly controlLog: ControlLog
  readonly capture: CaptureDeps
}

export interface FlaggedCredit {
  /** False when the payment was credited before and nothing changed. */
  readonly credited: boolean
  readonly orgId: number
  /** The paid amount. The credited amount is the same. */
  readonly amountUinr: bigint
  readonly balanceUinr: bigint
}

/** Maximum number of payments in one list, oldest first. */
const listedMax = 500

export class FlaggedPayments {
  readonly #deps: FlaggedPaymentsDeps
  constructor(deps: FlaggedPaymentsDeps) {
    this.#deps = deps
  }

  /** Returns the undecided payments of an organisation. Returns those of all organisations when `orgId` is null. */
  list(orgId: number | null): Promise<FlaggedRow[]> {
    return this.#deps.db.many(listFlagged, orgId, listedMax)
  }

  async count(): Promise<number> {
    return (await this.#deps.db.one(countFlagged)).count
  }

  /**
   * Credits the paid amount once, as a top-up with invoice, events and receipt, but without the bonus of a promo code. Throws `not_found`. Throws
   * `bad_request` for a payment that cannot be credited this way, and the message says what to do instead.
   */
  credit(paymentId: string): Promise<FlaggedCredit> {
    const at = new Date(this.#deps.clock.nowMs())
    return this.#deps.controlLog.change<FlaggedCredit>(async tx => {
      const payment = await lockedPayment(tx, paymentId)
      const { orgId, orderId, amountUinr } = payment
      if (payment.status === 'captured' && !isComplaint(payment))
        return { value: { credited: false, orgId, amountUinr, balanceUinr: await balanceOf(tx, orgId) }, news: [] }
      mayBeCredited(payment)
      const promoted = await this.#deps.capture.promote(tx, orgId, at)
      const topUp = await creditIn(tx, { orgId, amountUinr, reason: 'topup', ref: paymentId, paymentId, at })
      if (!topUp.credited || (await tx.exec(captureFlagged, orgId, paymentId, at)) !== 1) throw new Error('a flagged payment is in the ledger')
      if (payment.orderStatus === 'created') await tx.exec(markPaid, orgId, orderId, at)
      const { balanceUinr } = topUp
      await bookTopUp(this.#deps.capture, tx, { orgId, orderId, paymentId, amountUinr, bonusUinr: 0n, balanceUinr, at })
      const returned = await returnsBeforeCredit(this.#deps.capture, tx, orgId, paymentId, at)
      return { value: { credited: true, orgId, amountUinr, balanceUinr: await balanceOf(tx, orgId) }, news: [...topUp.news, ...returned, ...promoted] }
    })
  }

  /**
   * Removes a payment from the list, because the money was returned or the balance was corrected manually. It moves no money. `settled` is false when
   * the payment was settled before. Throws `not_found`, and `bad_request` for a payment that was never flagged.
   */
  settle(paymentId: string): Promise<{ readonly settled: boolean; readonly orgId: number }> {
    const at = new Date(this.#deps.clock.nowMs())
    return this.#deps.db.tx(async tx => {
      const { orgId, settledAt } = await lockedPayment(tx, paymentId)
      if ((await tx.exec(settleFlagged, orgId, paymentId, at)) === 1) return { settled: true, orgId }
      if (settledAt === null) throw fail('bad_request', { message: `Payment ${paymentId} is not flagged: there is nothing to settle.` })
      return { settled: false, orgId }
    })
  }
}

/** Locks the order, as every decision about a payment does, and then reads the payment. */
async function lockedPayment(tx: Tx, paymentId: string): Promise<FlaggedRow> {
  const found = await tx.maybe(findForOperator, paymentId)
  if (found === null) throw fail('not_found', { message: `There is no payment ${paymentId} here. brigade admin payments flagged lists those to look at.` })
  await tx.maybe(lockOrder, found.orderId)
  return tx.one(findForOperator, paymentId)
}

function isComplaint({ status, reason, settledAt }: FlaggedRow): boolean {
  return status === 'captured' && settledAt === null && (reason === 'amount_differs' || reason === 'currency_differs')
}

function mayBeCredited(payment: FlaggedRow): void {
  const { paymentId, orgId, status, currency, amountUinr, settledAt } = payment
  if (status === 'failed') throw fail('bad_request', { message: `Payment ${paymentId} failed at the payment provider: nothing was paid.` })
  if (status === 'captured')
    throw fail('bad_request', {
      message: `Payment ${paymentId} was credited with the amount of its order, and the provider told another one later. Look it up there, put the difference right with brigade admin credit correct --org ${orgId}, then brigade admin payments settle --payment ${paymentId}.`,
    })
  if (settledAt !== null)
    throw fail('bad_request', {
      message: `Payment ${paymentId} was settled on ${settledAt.toISOString()}, as given back or corrected manually. To credit it all the same: brigade admin credit grant --org ${orgId}.`,
    })
  if (currency !== topUpCurrency || amountUinr <= 0n)
    throw fail('bad_request', {
      message: `Payment ${paymentId} is in ${currency}: nobody but you can say what it is worth. Give it back at the provider, or brigade admin credit grant --org ${orgId} --inr <rupees> --ref ${paymentId}; then brigade admin payments settle --payment ${paymentId}.`,
    })
}
