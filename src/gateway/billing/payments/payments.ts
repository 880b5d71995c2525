/** Top-ups: orders at the payment provider, and the reports of its checkout and its webhook. */

import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Clock } from '../../../platform/clock.ts'
import type { Db } from '../../../platform/db/db.ts'
import type { ControlLog } from '../../../platform/db/db-control-log.ts'
import { fail } from '../../../platform/errors.ts'
import type { Log } from '../../../platform/observe/log.ts'
import type { Secret } from '../../../platform/security/secret.ts'
import type { Ids } from '../../../platform/values/ids.ts'
import { uinrFromInr } from '../../../platform/values/money.ts'
import { checkPromo, type PromoOffer } from '../promotions/promo-codes.ts'
import { orderOfPayment } from '../return-queries.ts'
import { returnIn } from '../returns.ts'
import { type CaptureDeps, type CaptureOutcome, captureIn, failIn, type PaymentFacts } from './captures.ts'
import type { PaymentClient } from './payment-client.ts'
import { paiseOfInr } from './payment-ids.ts'
import { findOrder, hasAddress, insertOrder } from './payment-queries.ts'
import { paymentEventOf, type ReturnEvent, returnEventOf } from './provider-events.ts'

/** The configured payment provider. */
export interface PaymentAccount {
  readonly client: Pick<PaymentClient, 'createOrder'>
  /** Public, because the checkout in the browser needs this id. */
  readonly keyId: string
  readonly keySecret: Secret
  readonly webhookSecret: Secret | null
}

export interface PaymentsDeps {
  readonly db: Db
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly controlLog: ControlLog
  /** Id of the provider. It is set even when no payment account is configured. */
  readonly provider: string
  /** Null when billing is off. */
  readonly account: PaymentAccount | null
  readonly capture: CaptureDeps
}

export interface NewOrder {
  readonly orgId: number
  readonly userId: number
  /** Whole rupees within the bounds of a top-up. */
  readonly amountInr: number
  readonly promoCode: string | null
}

export interface MadeOrder {
  readonly orderId: string
  readonly amountPaise: number
  readonly keyId: string
  readonly promo: PromoOffer | null
}

/** The proof that the checkout gives to the browser. */
export interface CheckoutProof {
  readonly orgId: number
  readonly orderId: string
  readonly paymentId: string
  readonly signature: string
}

/** The result of a webhook of the provider. */
export type WebhookOutcome = 'credited' | 'already_credited' | 'failed' | 'flagged' | 'taken_back' | 'given_back' | 'noted' | 'ignored'

export class Payments {
  readonly #deps: PaymentsDeps
  constructor(deps: PaymentsDeps) {
    this.#deps = deps
  }

  /** Throws `billing_disabled` when no payment provider is configured. */
  requireEnabled(): void {
    this.#account()
  }

  /**
   * Makes an order for a top-up. A promo code is checked here and redeemed when the order is paid. Throws `address_required`, `promo_invalid`,
   * `promo_redeemed`, `payment_provider_failed`.
   */
  async createOrder({ orgId, userId, amountInr, promoCode }: NewOrder): Promise<MadeOrder> {
    const { db, clock, ids, provider } = this.#deps
    const { client, keyId } = this.#account()
    if ((await db.maybe(hasAddress, orgId)) === null) throw fail('address_required')
    const amountUinr = uinrFromInr(amountInr)
    const at = new Date(clock.nowMs())
    const promo = promoCode === null ? null : await checkPromo(db, { orgId, code: promoCode, topupUinr: amountUinr, at })
    const amountPaise = paiseOfInr(amountInr)
    const receipt = `rcpt_${ids.uuidv7(clock.nowMs()).replaceAll('-', '')}`
    const orderId = await client.createOrder({ amountPaise, receipt, notes: { org_id: String(orgId), user_id: String(userId) } })
    const made = await db.exec(insertOrder, orgId, orderId, provider, amountUinr, promo?.code ?? null, keyId, userId, new Date(clock.nowMs()))
    if (made === 0) throw fail('payment_provider_failed', { cause: new Error('the payment provider gave the id of an earlier order') })
    return { orderId, amountPaise, keyId, promo }
  }

  /** Returns the present value of a promo code for the organisation. Redeems nothing. Throws `promo_invalid`, `promo_redeemed`. */
  checkPromo(orgId: number, code: string, amountInr: number | null): Promise<PromoOffer> {
    const { db, clock } = this.#deps
    return checkPromo(db, { orgId, code, topupUinr: amountInr === null ? null : uinrFromInr(amountInr), at: new Date(clock.nowMs()) })
  }

  /** Credits a payment of an order of this organisation by the signature of the checkout. Throws `not_found`, `bad_signature`. */
  async verify({ orgId, orderId, paymentId, signature }: CheckoutProof): Promise<Exclude<CaptureOutcome, { kind: 'unknown' }>> {
    const { keySecret } = this.#account()
    if ((await this.#deps.db.maybe(findOrder, orgId, orderId)) === null)
      throw fail('not_found', { message: 'This organisation has no such order. Orders are made with POST /me/billing/orders.' })
    if (!isSigned(checkoutText(orderId, paymentId), signature, keySecret))
      throw fail('bad_signature', {
        message:
          'The signature does not belong to this order and payment. Nothing was credited. Send order_id, payment_id and signature as the checkout gave them.',
      })
    const outcome = await this.take({ orderId, paymentId, reported: null, at: new Date(this.#deps.clock.nowMs()) })
    if (outcome.kind === 'unknown') throw fail('not_found', { message: 'That payment belongs to another order. Nothing was credited.' })
    return outcome
  }

  /** Handles a webhook of the provider: the raw bytes and their signature. Throws `bad_signature`, `not_found`, `billing_disabled`, `bad_request`. */
  async receive(provider: string, bytes: Buffer, signature: string | null): Promise<WebhookOutcome> {
    const { webhookSecret } = this.#account()
    const { log, provider: own } = this.#deps
    if (provider !== own) throw fail('not_found', { message: 'There is no payment provider of that id here.' })
    if (webhookSecret === null) {
      log.warn('a webhook of the payment provider came, and RAZORPAY_WEBHOOK_SECRET is not set', { provider })
      throw fail('billing_disabled', { message: 'Webhooks of the payment provider are not configured here. The operator sets their secret.' })
    }
    if (signature === null || !isSigned(bytes, signature, webhookSecret)) {
      log.warn('a webhook of the payment provider has no valid signature', { provider })
      throw fail('bad_signature', {
        message: 'The signature does not belong to these bytes. Nothing has changed. Sign the raw body with the secret of the webhook.',
      })
    }
    const json = parse(bytes)
    const gone = returnEventOf(json)
    const event = gone === null ? paymentEventOf(json) : 'unreadable'
    if (gone !== null && gone !== 'unreadable') return this.#takeReturn(gone)
    if (event === 'unreadable') log.error('a webhook of the payment provider is about a payment that cannot be read; look it up there', { provider })
    if (event === null || event === 'unreadable') return 'ignored'
    const { kind, orderId, paymentId, reported, failure } = event
    const facts = { orderId, paymentId, reported, at: new Date(this.#deps.clock.nowMs()) }
    if (kind === 'failed') return (await this.#deps.db.tx(tx => failIn(tx, facts, failure))) ? 'failed' : 'ignored'
    return outcomeName[(await this.take(facts)).kind]
  }

  /** Credits a payment once. The provider has confirmed the payment. Logs payments about which the operator must decide. */
  async take(facts: PaymentFacts): Promise<CaptureOutcome> {
    const { controlLog, capture, log, provider } = this.#deps
    const outcome = await controlLog.change(async tx => {
      const { outcome: value, news } = await captureIn(capture, tx, facts)
      return { value, news }
    })
    const { paymentId } = facts
    if (outcome.kind === 'flagged' && outcome.isNew)
      log.error('a payment was not credited; look at it with brigade admin payments', { provider, orgId: outcome.orgId, paymentId, code: outcome.reason })
    if (outcome.kind === 'repeated' && outcome.complaint !== null)
      log.error('a new report contradicts a credited payment', { provider, orgId: outcome.orgId, paymentId, code: outcome.complaint })
    if (outcome.kind === 'unknown') log.info('a payment of no order of ours', { provider, paymentId })
    return outcome
  }

  /** Handles a refund or dispute. The provider has confirmed it. Logs the money that moved. */
  async #takeReturn({ orderId: named, ...reported }: ReturnEvent): Promise<WebhookOutcome> {
    const { db, clock, controlLog, capture, log, provider } = this.#deps
    const { paymentId, event } = reported
    const orderId = named ?? (await db.maybe(orderOfPayment, paymentId))?.orderId ?? null
    if (orderId === null) {
      log.info('a refund or dispute of no payment of ours', { provider, paymentId })
      return 'ignored'
    }
    const outcome = await controlLog.change(async tx => {
      const { outcome: value, news } = await returnIn(capture, tx, { ...reported, orderId }, new Date(clock.nowMs()))
      return { value, news }
    })
    if (outcome.kind === 'unknown') return 'ignored'
    if (outcome.kind === 'noted') return 'noted'
    const { orgId, movedUinr } = outcome
    log.warn(movedUinr < 0n ? 'money of a top-up went back and was taken from the balance' : 'money that was taken back was given again', {
      provider,
      orgId,
      paymentId,
      code: event,
    })
    return movedUinr < 0n ? 'taken_back' : 'given_back'
  }

  #account(): PaymentAccount {
    if (this.#deps.account === null) throw fail('billing_disabled')
    return this.#deps.account
  }
}

const outcomeName: Readonly<Record<CaptureOutcome['kind'], WebhookOutcome>> = {
  unknown: 'ignored',
  credited: 'credited',
  repeated: 'already_credited',
  flagged: 'flagged',
}

function parse(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch (cause) {
    throw fail('bad_request', { message: 'The body is not valid JSON.', cause })
  }
}

/** Signatures of the payment provider: hex HMAC-SHA256, compared in constant time. */
const hexDigest = /^[0-9a-f]{64}$/

/** Returns true when these bytes were signed with this secret. A signature that is not a hex digest is invalid. */
export function isSigned(bytes: Buffer | string, signature: string, secret: Secret): boolean {
  if (!hexDigest.test(signature)) return false
  return timingSafeEqual(createHmac('sha256', secret.reveal()).update(bytes).digest(), Buffer.from(signature, 'hex'))
}

/**
 * Returns the text that the checkout signs with the key secret after a successful payment. Ids contain no `|`, so two different pairs of ids never
 * give the same text.
 */
export function checkoutText(orderId: string, paymentId: string): string {
  return `${orderId}|${paymentId}`
}
