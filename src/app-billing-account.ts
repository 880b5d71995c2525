/** Billing accounts, as services of rows. They work whether or not payments are configured. */
import type { AppParts } from './app-services.ts'
import { BillingAccounts } from './gateway/billing/account.ts'
import { BillingProfiles } from './gateway/billing/profile.ts'

export function billingAccountServices({ db, clock, config, limits }: AppParts) {
  return {
    billingAccounts: new BillingAccounts({ db, clock, flushNow: () => limits.flushNow() }),
    billingProfiles: new BillingProfiles({ db, clock, businessInvoices: config.GST_BUSINESS_INVOICES }),
  }
}
