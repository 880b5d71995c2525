/**
 * Finds payments that nobody reported: the browser was closed after the payment, and the webhook was lost or never set up. The gateway asks the
 * provider about unpaid orders, rarely and for a limited time. It handles the reply like a webhook.
 */
import type { Clock } from '../../../platform/clock.ts'
import type { Db } from '../../../platform/db/db.ts'
import type { Log } from '../../../platform/observe/log.ts'
import type { PaymentClient } from './payment-client.ts'
import { listUnpaid, noteAsked } from './payment-queries.ts'
import type { Payments } from './payments.ts'
import { capturedPaymentOf } from './provider-events.ts'

export interface PaymentReconciliationDeps {
  readonly db: Db
  readonly clock: Clock
  readonly log: Log
  /** Id of the provider, and the gateway's account there. The provider does not know orders of another account. */
  readonly provider: string
  readonly keyId: string
  readonly client: Pick<PaymentClient, 'paymentsOf'>
  readonly payments: Pick<Payments, 'take'>
}

/** Pause between two rounds. */
export const unheardSweepMs = 5 * 60_000
/** Minimum age of an order. The payment of a younger order may still be under way, and its browser or the webhook will report it. */
const youngestMs = 10 * 60_000
const oldestMs = 3 * 24 * 3600_000
/** Maximum number of requests in one round. */
const askedMax = 50
/** Pause after a request that the provider could not answer. */
const pauseMs = 3600_000

export class PaymentReconciliation {
  readonly #deps: PaymentReconciliationDeps
  #askAgainAtMs = 0
  constructor(deps: PaymentReconciliationDeps) {
    this.#deps = deps
  }

  /** Runs one round, which ends at the first request that the provider cannot answer. Throws errors of the database. */
  async sweep(signal: AbortSignal): Promise<void> {
    const { db, clock, log, provider, keyId, client } = this.#deps
    const nowMs = clock.nowMs()
    if (nowMs < this.#askAgainAtMs) return
    const due = await db.many(listUnpaid, provider, keyId, new Date(nowMs - oldestMs), new Date(nowMs - youngestMs), new Date(nowMs), askedMax)
    for (const { orgId, orderId } of due) {
      if (signal.aborted) return
      // The request is recorded first. So an order that makes the provider fail moves to the end of the list.
      await db.exec(noteAsked, orgId, orderId, new Date(nowMs))
      const reply = await client.paymentsOf(orderId, signal)
      if (reply.kind === 'unavailable') {
        if (signal.aborted) return
        this.#askAgainAtMs = clock.nowMs() + pauseMs
        log.warn('the payment provider does not say which orders are paid; it is asked again in an hour', {
          provider,
          ...(reply.status === null ? {} : { status: reply.status }),
        })
        return
      }
      if (reply.kind === 'payments') for (const payment of reply.payments) await this.#take(orderId, payment)
    }
  }

  async #take(orderId: string, payment: unknown): Promise<void> {
    const { clock, log, provider, payments } = this.#deps
    const facts = capturedPaymentOf(orderId, payment)
    if (facts === null) return
    const outcome = await payments.take({ ...facts, at: new Date(clock.nowMs()) })
    if (outcome.kind === 'credited')
      log.warn('a payment was credited that neither the checkout nor the webhook had reported', { provider, orgId: outcome.orgId, paymentId: facts.paymentId })
  }
}
