import { statement } from '../../../src/platform/db/db.ts'
import type { TestApp, TestReply } from '../../harness/app.ts'
import type { CheckoutResult, PaymentFacts, PaymentProvider, ProviderWebhook } from '../../harness/payment-provider.ts'

export const addAddress = statement<[orgId: number]>(
  'test.add_address',
  `insert into billing_addresses (org_id, name, line1, city, state, state_code, pincode, updated_at)
   values ($1::int, 'Asha Rao', '12 MG Road', 'Bengaluru', 'Karnataka', '29', '560001', now())`,
)
export const addPromo = statement<[code: string, bonusUinr: bigint, topupMinUinr: bigint, redemptionsMax: number | null, expiresAt: Date | null]>(
  'test.add_promo',
  `insert into promo_codes (code, bonus_uinr, topup_min_uinr, redemptions_max, expires_at, created_at)
   values ($1::text, $2::bigint, $3::bigint, $4::int, $5::timestamptz, now())`,
)
export const endPromo = statement<[code: string]>('test.end_promo', `update promo_codes set ended_at = now() where code = $1::text`)
export const promoRedemptions = statement<[code: string], { redemptions: number }>(
  'test.promo_redemptions',
  `select redemptions as "redemptions" from promo_codes where code = $1::text`,
)
export const ledgerOf = statement<[orgId: number], { reason: string; ref: string | null; inr: number }>(
  'test.ledger_of',
  `select reason as "reason", ref as "ref", (amount_uinr / 1000000.0)::float8 as "inr" from ledger where org_id = $1::int order by id`,
)
export const paymentsOf = statement<
  [orgId: number],
  { id: string; orderId: string; status: string; paise: number; currency: string; method: string | null; reason: string | null; bonusInr: number }
>(
  'test.payments_of',
  `select payment_id as "id", order_id as "orderId", status as "status", (amount_uinr / 10000)::float8 as "paise", currency as "currency",
     method as "method", reason as "reason", (bonus_uinr / 1000000.0)::float8 as "bonusInr"
   from payments where org_id = $1::int order by created_at, payment_id`,
)
export const invoicesOf = statement<[orgId: number], { number: string; paymentId: string; paise: number }>(
  'test.invoices_of',
  `select number as "number", payment_id as "paymentId", total_paise::float8 as "paise" from invoices where org_id = $1::int order by seq`,
)
export const eventsOf = statement<[orgId: number], { type: string; data: Record<string, unknown> }>(
  'test.billing_events_of',
  `select type as "type", data as "data" from webhook_events where org_id = $1::int and type in ('payment.captured', 'invoice.created') order by seq`,
)
export const receiptsOf = statement<[orgId: number], { to: string; data: Record<string, string> }>(
  'test.receipts_of',
  `select to_address as "to", data as "data" from emails where org_id = $1::int and template = 'receipt' order by id`,
)

/** An organisation that makes top-ups over HTTP. */
export interface Payer {
  readonly orgId: number
  readonly userId: number
  /** The cookie of the owner. */
  readonly cookie: string
  order(amountInr: number, promoCode?: string): Promise<string>
  verify(proof: CheckoutResult): Promise<TestReply>
}

let organisations = 0

/** Makes an organisation with a billing address. */
export async function newPayer(app: TestApp): Promise<Payer> {
  const { orgId, userId } = await app.otherOrg(`Payer ${++organisations}`)
  await app.db.exec(addAddress, orgId)
  const cookie = await app.signIn(userId, orgId)
  return {
    orgId,
    userId,
    cookie,
    async order(amountInr, promoCode) {
      const made = await app.call(
        'POST',
        '/me/billing/orders',
        { amount_inr: amountInr, ...(promoCode === undefined ? {} : { promo_code: promoCode }) },
        { cookie },
      )
      if (made.status !== 201) throw new Error(made.text)
      return made.json.order_id
    },
    verify: proof => app.call('POST', '/me/billing/verify', proof, { cookie }),
  }
}

/** Sends a webhook in the same way as the provider. */
export function deliver(app: TestApp, { body, headers }: ProviderWebhook, provider = 'razorpay'): Promise<TestReply> {
  return app.call('POST', `/webhooks/${provider}`, body, { token: null, headers: { ...headers } })
}

/** Makes the webhook of an event and sends it. */
export function notify(app: TestApp, provider: PaymentProvider, event: string, facts: PaymentFacts): Promise<TestReply> {
  return deliver(app, provider.webhook(event, facts))
}
