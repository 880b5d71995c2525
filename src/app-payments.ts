/** Top-ups at the payment provider, as a service of rows. */
import type { AppParts } from './app-services.ts'
import { sellerOf } from './gateway/billing/invoice-seller.ts'
import { PaymentClient } from './gateway/billing/payment-client.ts'
import { type PaymentAccount, Payments } from './gateway/billing/payments.ts'

export function paymentServices(parts: AppParts): { payments: Payments } {
  const { db, clock, ids, log, config, controlLog, keys, mail, baseUrl } = parts
  return {
    payments: new Payments({
      db,
      clock,
      ids,
      log,
      controlLog,
      provider: config.PAYMENT_PROVIDER,
      account: accountOf(parts),
      capture: { ids, mail, seller: sellerOf(config), promote: (tx, orgId, at) => keys.promote(tx, orgId, at), baseUrl },
    }),
  }
}

/** Null when the settings name no account: billing is off. */
function accountOf({ config, log, outbound }: AppParts): PaymentAccount | null {
  const { RAZORPAY_KEY_ID: keyId, RAZORPAY_KEY_SECRET: keySecret, RAZORPAY_WEBHOOK_SECRET: webhookSecret } = config
  if (keyId === null || keySecret === null) return null
  const client = new PaymentClient({
    dial: request => outbound.toProvider(request),
    log,
    provider: config.PAYMENT_PROVIDER,
    baseUrl: config.RAZORPAY_BASE_URL,
    keyId,
    keySecret,
    timeoutMs: config.RAZORPAY_TIMEOUT_MS,
  })
  return { client, keyId, keySecret, webhookSecret }
}
