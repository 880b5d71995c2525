import { z } from 'zod'
import { endpointOf } from '../../../platform/endpoint.ts'
import { fail } from '../../../platform/errors.ts'
import { inrFromUinr } from '../../../platform/values/money.ts'
import type { CaptureOutcome, PromoResult } from './captures.ts'
import { providerId, topUpCurrency, topUpInr } from './payment-ids.ts'
import type { Payments } from './payments.ts'

const row = endpointOf<{ payments: Payments }>()

const tag = 'billing'
const access = { role: 'owner' } as const
const requires = ({ payments }: { payments: Payments }): void => payments.requireEnabled()

const wholeRupees = `expected a whole number of rupees from ${topUpInr.min} to ${topUpInr.max}`
const amountInr = z.int({ error: wholeRupees }).min(topUpInr.min, wholeRupees).max(topUpInr.max, wholeRupees)
const promoCode = z.string().max(200)

/** Accepts each field under the gateway's name and under the name that the provider's checkout uses. */
const proof = z
  .object({
    order_id: providerId.optional().describe('Or razorpay_order_id.'),
    payment_id: providerId.optional().describe('Or razorpay_payment_id.'),
    signature: z.string().max(1000).optional().describe('Or razorpay_signature: hex HMAC-SHA256 of "order_id|payment_id" with the key secret.'),
    razorpay_order_id: providerId.optional(),
    razorpay_payment_id: providerId.optional(),
    razorpay_signature: z.string().max(1000).optional(),
  })
  .meta({ examples: [{ order_id: 'order_EKwxwAgItmmXdp', payment_id: 'pay_29QQoUBi66xm2f', signature: '9ef4dffb…' }] })

const promoResult = z
  .object({
    promo_code: z.string(),
    bonus_inr: z.number().describe('What was credited on top; 0 = nothing.'),
    reason: z.string().nullable().describe('Why there was no bonus: promo_redeemed, promo_used_up, promo_expired, promo_ended …'),
  })
  .optional()
  .describe('Only for an order with a promo code.')

export const paymentEndpoints = {
  createPaymentOrder: row({
    at: 'POST /me/billing/orders',
    auth: 'session',
    access,
    tag,
    summary: 'Makes an order for a top-up at the payment provider. The checkout in the browser takes order_id and key_id. A billing address comes first.',
    input: {
      body: z
        .object({
          amount_inr: amountInr.describe('Whole rupees, 100 to 100000.'),
          promo_code: promoCode.nullish().describe('Redeemed when the order is paid.'),
        })
        .meta({ examples: [{ amount_inr: 500 }] }),
    },
    output: z.object({
      order_id: z.string(),
      amount_inr: z.int(),
      amount: z.int().describe('The same in paise.'),
      currency: z.literal(topUpCurrency),
      key_id: z.string().describe('Public key id at the payment provider.'),
      promo: z
        .object({ promo_code: z.string(), bonus_inr: z.number() })
        .optional()
        .describe('The bonus that the payment will bring, if the code is still good then.'),
    }),
    status: 201,
    errors: ['address_required', 'promo_invalid', 'promo_redeemed', 'billing_disabled', 'payment_provider_failed'],
    requires,
    async handle({ payments }, { body }, { principal }) {
      if (principal.kind !== 'session') throw fail('no_session')
      const { orgId, userId } = principal
      const typed = body.promo_code?.trim() ?? ''
      const made = await payments.createOrder({ orgId, userId, amountInr: body.amount_inr, promoCode: typed === '' ? null : typed })
      return {
        order_id: made.orderId,
        amount_inr: body.amount_inr,
        amount: made.amountPaise,
        currency: topUpCurrency,
        key_id: made.keyId,
        ...(made.promo === null ? {} : { promo: { promo_code: made.promo.code, bonus_inr: inrFromUinr(made.promo.bonusUinr) } }),
      }
    },
  }),

  verifyPayment: row({
    at: 'POST /me/billing/verify',
    auth: 'session',
    access,
    tag,
    summary: 'Credits a paid order by the signature of the checkout. Repeating it changes nothing, and the webhook of the provider may come first.',
    input: { body: proof },
    output: z.object({
      ok: z.literal(true),
      balance_inr: z.number(),
      credited: z.boolean().describe('True: by this call. False: it was credited before, or it was not credited at all and reason says why.'),
      promo: promoResult,
      reason: z.string().optional().describe('Why the payment is held for the operator: order_paid_already, amount_differs, currency_differs.'),
    }),
    errors: ['bad_signature', 'not_found', 'billing_disabled'],
    requires,
    async handle({ payments }, { body }, { principal }) {
      const orderId = body.order_id ?? body.razorpay_order_id
      const paymentId = body.payment_id ?? body.razorpay_payment_id
      const signature = body.signature ?? body.razorpay_signature
      if (orderId === undefined || paymentId === undefined)
        throw fail('bad_request', { message: 'Send order_id, payment_id and signature as the checkout gave them.' })
      return verified(await payments.verify({ orgId: principal.orgId, orderId, paymentId, signature: signature ?? '' }))
    },
  }),

  checkPromoCode: row({
    at: 'POST /me/billing/promo/check',
    auth: 'session',
    access,
    tag,
    summary: 'What a promo code is worth to this organisation now. Nothing is redeemed.',
    input: {
      body: z
        .object({ promo_code: promoCode, amount_inr: amountInr.optional().describe('The top-up that the code is for.') })
        .meta({ examples: [{ promo_code: 'WELCOME' }] }),
    },
    output: z.object({
      valid: z.literal(true),
      bonus_inr: z.number(),
      topup_min_inr: z.number().optional().describe('The least top-up that it comes with; left out where any will do.'),
    }),
    errors: ['promo_invalid', 'promo_redeemed', 'billing_disabled'],
    audit: false,
    requires,
    async handle({ payments }, { body }, { principal }) {
      const { bonusUinr, topupMinUinr } = await payments.checkPromo(principal.orgId, body.promo_code, body.amount_inr ?? null)
      return { valid: true as const, bonus_inr: inrFromUinr(bonusUinr), ...(topupMinUinr === 0n ? {} : { topup_min_inr: inrFromUinr(topupMinUinr) }) }
    },
  }),

  receivePaymentWebhook: row({
    at: 'POST /webhooks/{provider}',
    auth: 'signature',
    access: {},
    tag,
    summary:
      'For the payment provider: payments of our orders, their refunds and disputes, signed over the raw body. Other events are answered 200 and ignored.',
    input: {
      path: z.object({ provider: z.string().describe('Id of the payment provider: razorpay, or what PAYMENT_PROVIDER says.') }),
      headers: z.looseObject({
        'x-razorpay-signature': z.string().optional().describe('x-<provider>-signature: hex HMAC-SHA256 of the body with the secret of the webhook.'),
      }),
      bodyKind: 'raw',
    },
    output: z.object({
      ok: z.literal(true),
      outcome: z
        .enum(['credited', 'already_credited', 'failed', 'flagged', 'taken_back', 'given_back', 'noted', 'ignored'])
        .describe('noted: of a refund or dispute, and nothing of the balance changes.'),
      credited: z.boolean(),
    }),
    errors: ['bad_signature', 'not_found', 'billing_disabled'],
    requires,
    async handle({ payments }, { path, headers, body }) {
      const signature = headers[`x-${path.provider.toLowerCase()}-signature`]
      const outcome = await payments.receive(path.provider, body, typeof signature === 'string' ? signature : null)
      return { ok: true as const, outcome, credited: outcome === 'credited' }
    },
  }),
}

function verified(outcome: Exclude<CaptureOutcome, { kind: 'unknown' }>) {
  const common = { ok: true as const, balance_inr: inrFromUinr(outcome.balanceUinr), credited: outcome.kind === 'credited' }
  if (outcome.kind === 'flagged') return { ...common, reason: outcome.reason }
  return outcome.promo === null ? common : { ...common, promo: promoView(outcome.promo) }
}

function promoView({ code, bonusUinr, refusal }: PromoResult) {
  return { promo_code: code, bonus_inr: inrFromUinr(bonusUinr), reason: refusal }
}
