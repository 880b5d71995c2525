/** Top-ups at the payment provider, as a service of rows. */
import type { AppParts } from './app-services.ts'
import { sellerOf } from './gateway/billing/invoice-seller.ts'
import { PaymentClient } from './gateway/billing/payment-client.ts'
import { type PaymentAccount, Payments } from './gateway/billing/payments.ts'
import { UnheardPayments, unheardSweepMs } from './gateway/billing/unheard-payments.ts'

export function paymentServices(parts: AppParts): { payments: Payments } {
  const { db, clock, ids, log, config, controlLog, keys, mail, jobs, baseUrl } = parts
  const provider = config.PAYMENT_PROVIDER
  const account = accountOf(parts)
  const payments = new Payments({
    db,
    clock,
    ids,
    log,
    controlLog,
    provider,
    account,
    capture: { ids, mail, seller: sellerOf(config), promote: (tx, orgId, at) => keys.promote(tx, orgId, at), baseUrl },
  })
  if (account !== null) {
    const unheard = new UnheardPayments({ db, clock, log, provider, keyId: account.keyId, client: account.client, payments })
    jobs.every('billing.unheard', unheardSweepMs, signal => unheard.sweep(signal))
  }
  return { payments }
}

/** Null when the settings name no account: billing is off. */
function accountOf({ config, log, outbound }: AppParts): (PaymentAccount & { readonly client: PaymentClient }) | null {
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
