import type { Clock } from '../../platform/clock.ts'
import type { Config } from '../../platform/config.ts'
import type { Db } from '../../platform/db/db.ts'
import type { ControlLog } from '../../platform/db/db-control-log.ts'
import type { Jobs } from '../../platform/db/jobs.ts'
import type { Flushable } from '../../platform/flushable.ts'
import type { Log } from '../../platform/observe/log.ts'
import type { Outbound } from '../../platform/outbound/outbound.ts'
import type { Ids } from '../../platform/values/ids.ts'
import { BillingAccounts } from './account.ts'
import { BillingDocuments } from './invoices/billing-documents.ts'
import type { CaptureDeps } from './payments/captures.ts'
import { PaymentClient } from './payments/payment-client.ts'
import { PaymentReconciliation, unheardSweepMs } from './payments/payment-reconciliation.ts'
import { type PaymentAccount, Payments } from './payments/payments.ts'
import { BillingProfiles } from './profile/profile.ts'

export interface BillingDeps {
  readonly db: Db
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly config: Config
  readonly controlLog: ControlLog
  readonly outbound: Outbound
  readonly jobs: Jobs
  /** Writes the charges of this process to the database. */
  readonly journal: Flushable
  readonly capture: CaptureDeps
}

export interface Billing {
  readonly payments: Payments
  readonly billingAccounts: BillingAccounts
  readonly billingProfiles: BillingProfiles
  readonly billingDocuments: BillingDocuments
}

/** Constructs the services for top-ups, billing accounts and invoices. Accounts and invoices work with and without configured payments. */
export function createBilling(deps: BillingDeps): Billing {
  const { db, clock, ids, log, config, controlLog, jobs, journal, capture } = deps
  const provider = config.PAYMENT_PROVIDER
  const account = accountOf(deps)
  const payments = new Payments({ db, clock, ids, log, controlLog, provider, account, capture })
  if (account !== null) {
    const unheard = new PaymentReconciliation({ db, clock, log, provider, keyId: account.keyId, client: account.client, payments })
    jobs.every('billing.unheard', unheardSweepMs, signal => unheard.sweep(signal))
  }
  return {
    payments,
    billingAccounts: new BillingAccounts({ db, clock, journal }),
    billingProfiles: new BillingProfiles({ db, clock, businessInvoices: config.GST_BUSINESS_INVOICES }),
    billingDocuments: new BillingDocuments({ db }),
  }
}

/** Returns the payment account. Returns null when the settings name no payment account. Billing is then off. */
function accountOf({ config, log, outbound }: BillingDeps): (PaymentAccount & { readonly client: PaymentClient }) | null {
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
