/** Invoices and receipts, as a service of rows. */
import type { AppParts } from './app-services.ts'
import { BillingPapers } from './gateway/billing/billing-papers.ts'

export function invoiceServices({ db }: Pick<AppParts, 'db'>) {
  return { billingPapers: new BillingPapers({ db }) }
}
