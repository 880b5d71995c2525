import { createHmac, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** An order as the provider stores it. */
export interface ProviderOrder {
  readonly id: string
  /** Paise. */
  readonly amount: number
  readonly currency: string
  readonly receipt: string | null
  readonly notes: Readonly<Record<string, string>>
}

/** A failure of the next request. */
export interface ProviderFailure {
  readonly status?: number
  /** A JSON value, or text that is sent as it is. */
  readonly body?: unknown
  /** Accepts the request and never answers. */
  readonly hang?: boolean
  /** Accepts the request and breaks the connection. */
  readonly reset?: boolean
  /** Makes the order, and changes these fields of the reply. */
  readonly change?: Readonly<Record<string, unknown>>
}

export interface PaymentFacts {
  readonly orderId: string
  readonly paymentId?: string
  /** In paise. The default is the amount of the order. */
  readonly amount?: number
  readonly currency?: string
  readonly method?: string
  /** The reason of the failure. */
  readonly errorReason?: string
}

/** A refund or dispute as the provider reports it. */
export interface ReturnFacts {
  readonly id: string
  readonly orderId: string
  readonly paymentId: string
  /** Paise. */
  readonly amount: number
  readonly currency?: string
  /** The phase of a dispute. The default is chargeback. */
  readonly phase?: string
  /** The time of the event in Unix seconds. */
  readonly at?: number
  /** False: the event does not contain the payment. */
  readonly withPayment?: boolean
}

/** The result that the provider's checkout gives the browser after a successful payment. */
export interface CheckoutResult {
  readonly order_id: string
  readonly payment_id: string
  readonly signature: string
}

/** A webhook as the provider would send it. */
export interface ProviderWebhook {
  readonly body: string
  readonly headers: Readonly<Record<string, string>>
}

export interface PaymentProvider {
  readonly url: string
  readonly keyId: string
  readonly keySecret: string
  readonly webhookSecret: string
  /** All orders so far, oldest first. */
  readonly orders: readonly ProviderOrder[]
  /** Bodies and authorization headers of all requests so far. */
  readonly requests: readonly { readonly method: string; readonly path: string; readonly authorization: string; readonly body: string }[]
  /** Queues failures for the next requests. */
  failNext(...failures: readonly ProviderFailure[]): void
  /** Adds a payment to its order without sending an event. `fields` change it. Returns its id. */
  pay(facts: PaymentFacts, fields?: Readonly<Record<string, unknown>>): string
  /** Returns a successful payment of that order, with the signature of the checkout. */
  checkout(orderId: string, paymentId?: string): CheckoutResult
  /** Returns a signed event of a refund or dispute of a payment. */
  returnWebhook(event: string, facts: ReturnFacts): ProviderWebhook
  /** Returns a signed event of a payment. The event can have any name. */
  webhook(event: string, facts: PaymentFacts): ProviderWebhook
  close(): Promise<void>
}

/** The settings that switch billing on at this provider. */
export function billingEnv({ url, keyId, keySecret, webhookSecret }: PaymentProvider): Record<string, string> {
  return { RAZORPAY_BASE_URL: url, RAZORPAY_KEY_ID: keyId, RAZORPAY_KEY_SECRET: keySecret, RAZORPAY_WEBHOOK_SECRET: webhookSecret }
}

/**
 * Returns a signature: HMAC-SHA256 in hex. The checkout signs `order_id|payment_id` with the key secret, and a webhook signs its raw body with the webhook
 * secret.
 */
export function providerSignature(text: string | Buffer, secret: string): string {
  return createHmac('sha256', secret).update(text).digest('hex')
}

/** Returns a new id in the form of the provider, such as `order_…` or `pay_…`. */
export function providerId(kind: 'order' | 'pay' | 'rfnd' | 'disp'): string {
  return `${kind}_${randomBytes(32)
    .toString('base64')
    .replace(/[^A-Za-z0-9]/g, '')
    .slice(0, 14)}`
}

/** Starts an HTTP server with the Orders API of the payment provider: basic auth, amounts in paise, failures on request. */
export async function startPaymentProvider(): Promise<PaymentProvider> {
  const orders: ProviderOrder[] = []
  const requests: { method: string; path: string; authorization: string; body: string }[] = []
  const failures: ProviderFailure[] = []
  const paid: { readonly orderId: string; readonly payment: object }[] = []
  const amountOf = ({ orderId, amount }: PaymentFacts): number => amount ?? orders.find(order => order.id === orderId)?.amount ?? 10_000
  const server = createServer((request, response) => {
    play(request, response).catch(() => response.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const provider: PaymentProvider = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    keyId: 'rzp_test_harnessKey01',
    keySecret: 'harness-key-secret-never-shown',
    webhookSecret: 'harness-webhook-secret-never-shown',
    orders,
    requests,
    failNext: (...next) => void failures.push(...next),
    pay(facts, fields = {}) {
      const paymentId = facts.paymentId ?? providerId('pay')
      paid.push({ orderId: facts.orderId, payment: { ...paymentEntity('captured', { ...facts, paymentId, amount: amountOf(facts) }), ...fields } })
      return paymentId
    },
    checkout(orderId, paymentId = providerId('pay')) {
      return { order_id: orderId, payment_id: paymentId, signature: providerSignature(`${orderId}|${paymentId}`, provider.keySecret) }
    },
    returnWebhook: (event, facts) => signedWebhook(returnBody(event, facts), provider.webhookSecret),
    webhook: (event, facts) => signedWebhook(eventBody(event, { ...facts, amount: amountOf(facts) }), provider.webhookSecret),
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }

  async function play(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part)
    const body = Buffer.concat(parts).toString()
    const { method = '', url = '' } = request
    const authorization = request.headers.authorization ?? ''
    requests.push({ method, path: url, authorization, body })
    const failure = failures.shift() ?? {}
    if (failure.hang) return
    if (failure.reset) return void response.destroy()
    if (failure.status !== undefined) return answer(response, failure.status, failure.body ?? refusal('something went wrong'))
    const expected = `Basic ${Buffer.from(`${provider.keyId}:${provider.keySecret}`).toString('base64')}`
    if (authorization !== expected) return answer(response, 401, refusal('Authentication failed'))
    const ofOrder = method === 'GET' ? /^\/v1\/orders\/([^/]+)\/payments$/.exec(url)?.[1] : undefined
    if (ofOrder !== undefined) {
      const orderId = decodeURIComponent(ofOrder)
      if (!orders.some(order => order.id === orderId)) return answer(response, 400, refusal('The id provided does not exist'))
      const items = paid.filter(entry => entry.orderId === orderId).map(entry => entry.payment)
      return answer(response, 200, { entity: 'collection', count: items.length, items })
    }
    if (method !== 'POST' || url !== '/v1/orders') return answer(response, 404, refusal('The requested URL was not found on the server.'))
    const asked: unknown = JSON.parse(body)
    const order = orderOf(asked)
    if (typeof order === 'string') return answer(response, 400, refusal(order))
    orders.push(order)
    answer(response, 200, {
      ...order,
      entity: 'order',
      amount_paid: 0,
      amount_due: order.amount,
      offer_id: null,
      status: 'created',
      attempts: 0,
      created_at: 1_767_225_600,
      ...failure.change,
    })
  }
  return provider
}

function signedWebhook(body: string, secret: string): ProviderWebhook {
  const headers = {
    'content-type': 'application/json',
    'x-razorpay-signature': providerSignature(body, secret),
    'x-razorpay-event-id': randomBytes(7).toString('hex'),
  }
  return { body, headers }
}

/** Returns the body of an event of a refund (`refund.…`) or dispute (`payment.dispute.…`), in the form that the provider documents. */
export function returnBody(event: string, facts: ReturnFacts): string {
  const { id, orderId, paymentId, amount, currency = 'INR', phase = 'chargeback', at = 1_767_225_700, withPayment = true } = facts
  const what = event.startsWith('refund.') ? 'refund' : 'dispute'
  const own =
    what === 'refund'
      ? { id, entity: what, amount, currency, payment_id: paymentId, notes: [], receipt: null, status: event.split('.')[1], speed_processed: 'normal' }
      : { id, entity: what, payment_id: paymentId, amount, currency, amount_deducted: 0, reason_code: 'goods_or_services_not_received', phase, status: 'open' }
  const payment = withPayment ? { payment: { entity: paymentEntity('captured', { orderId, paymentId, amount }) } } : {}
  return JSON.stringify({
    entity: 'event',
    account_id: 'acc_harness0000001',
    event,
    contains: [what],
    payload: { [what]: { entity: own }, ...payment },
    created_at: at,
  })
}

function orderOf(asked: unknown): ProviderOrder | string {
  const { amount, currency, receipt, notes } = asked as Record<string, unknown>
  if (typeof amount !== 'number' || !Number.isInteger(amount)) return 'The amount must be an integer.'
  if (amount < 100) return 'Order amount less than minimum amount allowed'
  if (typeof currency !== 'string') return 'The currency field is required.'
  if (receipt !== undefined && (typeof receipt !== 'string' || receipt.length > 40)) return 'The receipt may not be greater than 40 characters.'
  if (typeof notes === 'object' && notes !== null && Object.keys(notes).length > 15) return 'notes may have at most 15 keys'
  return { id: providerId('order'), amount, currency, receipt: receipt ?? null, notes: (notes ?? {}) as Record<string, string> }
}

function refusal(description: string): object {
  return { error: { code: 'BAD_REQUEST_ERROR', description, source: 'business', step: 'payment_initiation', reason: 'input_validation_failed', metadata: {} } }
}

function answer(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(typeof body === 'string' ? body : JSON.stringify(body))
}

function eventBody(event: string, facts: PaymentFacts): string {
  const entity = paymentEntity(event === 'payment.failed' ? 'failed' : 'captured', facts)
  const contains = ['payment']
  return JSON.stringify({ entity: 'event', account_id: 'acc_harness0000001', event, contains, payload: { payment: { entity } }, created_at: 1_767_225_605 })
}

function paymentEntity(status: 'captured' | 'failed', facts: PaymentFacts): object {
  const { orderId, paymentId = providerId('pay'), amount, currency = 'INR', method = 'upi', errorReason } = facts
  const isFailure = status === 'failed'
  return {
    id: paymentId,
    entity: 'payment',
    amount,
    currency,
    status,
    order_id: orderId,
    invoice_id: null,
    international: false,
    method,
    amount_refunded: 0,
    refund_status: null,
    captured: !isFailure,
    description: 'Top-up of Asha Rao — ₹',
    card_id: null,
    bank: null,
    wallet: null,
    vpa: 'asha@examplebank',
    email: 'asha@example.test',
    contact: '+919900000000',
    notes: [],
    fee: 236,
    tax: 36,
    error_code: isFailure ? 'BAD_REQUEST_ERROR' : null,
    error_description: isFailure ? 'Payment was unsuccessful because Asha typed a wrong PIN' : null,
    error_source: isFailure ? 'customer' : null,
    error_step: isFailure ? 'payment_authentication' : null,
    error_reason: isFailure ? (errorReason ?? 'payment_failed') : null,
    created_at: 1_767_225_600,
  }
}
