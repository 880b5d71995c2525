/** The HTTP API of the payment provider for orders and their payments. The credentials go only to this API, in basic auth. */
import { z } from 'zod'
import { fail } from '../../../platform/errors.ts'
import type { Log } from '../../../platform/observe/log.ts'
import type { Outbound } from '../../../platform/outbound/outbound.ts'
import type { Secret } from '../../../platform/security/secret.ts'
import { providerId, topUpCurrency } from './payment-ids.ts'

export interface PaymentClientDeps {
  readonly dial: Outbound['toProvider']
  readonly log: Log
  /** Id of the provider, for the log. */
  readonly provider: string
  readonly baseUrl: string
  readonly keyId: string
  readonly keySecret: Secret
  /** Maximum wait for a whole reply. */
  readonly timeoutMs: number
}

export interface WantedOrder {
  readonly amountPaise: number
  /** The gateway's own reference: at most 40 characters, and never used twice. */
  readonly receipt: string
  /** Ids that the operator sees in the provider's dashboard. */
  readonly notes: Readonly<Record<string, string>>
}

/** The provider's reply about the payments of an order. The payments in it are not parsed yet. */
export type PaymentsReply =
  | { readonly kind: 'payments'; readonly payments: readonly unknown[] }
  /** The provider does not know the order. */
  | { readonly kind: 'unknown' }
  /** The provider gives no list, because it is unreachable, refuses the credentials, or does not have the path. `status` is null when there was no reply. */
  | { readonly kind: 'unavailable'; readonly status: number | null }

const replyMaxBytes = 256 * 1024
const paymentList = z.object({ items: z.array(z.unknown()) })
const madeOrder = z.object({ id: providerId, amount: z.number().optional(), currency: z.string().optional() })
/** `code` and `reason` are words from the provider's fixed lists. The description is free text, so it is not logged and not put into errors. */
const refusal = z.object({ error: z.object({ code: word().optional(), reason: word().optional() }) })

function word() {
  return z
    .string()
    .regex(/^\w{1,60}$/)
    .nullable()
    .catch(null)
}

export class PaymentClient {
  readonly #deps: PaymentClientDeps
  readonly #url: string
  constructor(deps: PaymentClientDeps) {
    this.#deps = deps
    this.#url = `${deps.baseUrl.replace(/\/+$/, '')}/v1/orders`
  }

  /** Makes an order and returns its id. Throws `payment_provider_failed` for every failure; the log has the details. */
  async createOrder({ amountPaise, receipt, notes }: WantedOrder): Promise<string> {
    // The order requests capture, so capture does not depend on a setting of the account. Payments that are authorized but not captured go back to
    // the payer.
    const order = { amount: amountPaise, currency: topUpCurrency, receipt, notes, payment_capture: true }
    const { status, text } = await this.#send('POST', this.#url, JSON.stringify(order)).catch((error: unknown) => {
      this.#deps.log.error('the payment provider cannot be reached', { provider: this.#deps.provider, error })
      throw fail('payment_provider_failed', { message: 'The payment provider could not be reached. Nothing was charged. Try again shortly.', cause: error })
    })
    if (status < 200 || status > 299) throw this.#refused(status, text)
    const made = madeOrder.safeParse(jsonOf(text))
    const isAsAsked = made.success && (made.data.amount ?? amountPaise) === amountPaise && (made.data.currency ?? topUpCurrency) === topUpCurrency
    if (!isAsAsked) {
      this.#deps.log.error('the payment provider made another order than it was asked for', { provider: this.#deps.provider, status })
      throw fail('payment_provider_failed')
    }
    return made.data.id
  }

  /** Asks the provider for the payments of an order. The signal can end the request. Never throws. */
  async paymentsOf(orderId: string, signal: AbortSignal): Promise<PaymentsReply> {
    try {
      const { status, text } = await this.#send('GET', `${this.#url}/${encodeURIComponent(orderId)}/payments`, undefined, signal)
      if (status === 400) return { kind: 'unknown' }
      const list = paymentList.safeParse(jsonOf(text))
      return status === 200 && list.success ? { kind: 'payments', payments: list.data.items } : { kind: 'unavailable', status }
    } catch {
      return { kind: 'unavailable', status: null }
    }
  }

  async #send(method: 'GET' | 'POST', url: string, body?: string, ending?: AbortSignal): Promise<{ status: number; text: string }> {
    const { dial, keyId, keySecret, timeoutMs } = this.#deps
    const authorization = `Basic ${Buffer.from(`${keyId}:${keySecret.reveal()}`).toString('base64')}`
    const headers = { authorization, accept: 'application/json', 'accept-encoding': 'identity' }
    const sent = body === undefined ? { headers } : { headers: { ...headers, 'content-type': 'application/json' }, body }
    const late = AbortSignal.timeout(timeoutMs)
    const reply = await dial({ method, url, ...sent, signal: ending === undefined ? late : AbortSignal.any([late, ending]) })
    return { status: reply.status, text: (await reply.body.buffer(replyMaxBytes)).toString('utf8') }
  }

  #refused(status: number, text: string): Error {
    const { log, provider } = this.#deps
    const said = refusal.safeParse(jsonOf(text))
    const code = said.success ? (said.data.error.reason ?? said.data.error.code ?? undefined) : undefined
    const fields = { provider, status, ...(code === undefined ? {} : { code }) }
    if (status === 401 || status === 403) {
      log.error('the payment provider refuses our credentials; look at RAZORPAY_KEY_ID and RAZORPAY_KEY_SECRET', fields)
      return fail('payment_provider_failed', {
        message: 'The payment provider refused this gateway. Nothing was charged. The operator has to act; trying again does not help.',
        shouldRetry: false,
      })
    }
    log.error('the payment provider made no order', fields)
    const isTheirs = status >= 500 || status === 429
    return isTheirs
      ? fail('payment_provider_failed')
      : fail('payment_provider_failed', {
          message: 'The payment provider refused this order. Nothing was charged. Try another amount, or ask the operator.',
          shouldRetry: false,
        })
  }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
