/** Constructs the service for top-ups at the payment provider. */

import { BillingAccounts } from '../../gateway/billing/account.ts'
import { BillingDocuments } from '../../gateway/billing/invoices/billing-documents.ts'
import { sellerOf } from '../../gateway/billing/invoices/invoice-seller.ts'
import { onDebitedOf } from '../../gateway/billing/low-balance.ts'
import type { CaptureDeps } from '../../gateway/billing/payments/captures.ts'
import { PaymentClient } from '../../gateway/billing/payments/payment-client.ts'
import { PaymentReconciliation, unheardSweepMs } from '../../gateway/billing/payments/payment-reconciliation.ts'
import { type PaymentAccount, Payments } from '../../gateway/billing/payments/payments.ts'
import { BillingProfiles } from '../../gateway/billing/profile/profile.ts'
import type { AppParts } from '../parts.ts'

export function paymentServices(parts: AppParts): { payments: Payments } {
  const { db, clock, ids, log, config, controlLog, jobs } = parts
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
    capture: captureDepsOf(parts),
  })
  if (account !== null) {
    const unheard = new PaymentReconciliation({ db, clock, log, provider, keyId: account.keyId, client: account.client, payments })
    jobs.every('billing.unheard', unheardSweepMs, signal => unheard.sweep(signal))
  }
  return { payments }
}

/** Returns what the capture or the return of a payment does in addition to moving the money. */
export function captureDepsOf({
  clock,
  ids,
  config,
  mail,
  keys,
  audit,
  baseUrl,
}: Pick<AppParts, 'clock' | 'ids' | 'config' | 'mail' | 'keys' | 'audit' | 'baseUrl'>): CaptureDeps {
  return {
    ids,
    mail,
    seller: sellerOf(config),
    promote: (tx, orgId, at) => keys.promote(tx, orgId, at),
    onDebited: onDebitedOf({ clock, ids, mail, baseUrl }),
    onReturned: (tx, orgId, act, target) => audit.recordIn(tx, { orgId, actor: 'system', act, target, sourceIp: null, requestId: null }, 'ok'),
    baseUrl,
  }
}

/** Returns the payment account; null: the settings name none, so billing is off. */
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

/** Constructs the services for billing accounts. They work with and without configured payments. */
export function billingAccountServices({ db, clock, config, limits }: AppParts) {
  return {
    billingAccounts: new BillingAccounts({ db, clock, journal: limits }),
    billingProfiles: new BillingProfiles({ db, clock, businessInvoices: config.GST_BUSINESS_INVOICES }),
  }
}

/** Constructs the service for invoices and receipts. */
export function invoiceServices({ db }: Pick<AppParts, 'db'>) {
  return { billingDocuments: new BillingDocuments({ db }) }
}
