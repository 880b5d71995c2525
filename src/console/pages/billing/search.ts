export const billingTabs = ['balance', 'invoices', 'details'] as const
export type BillingTab = (typeof billingTabs)[number]

/** `topup` opens the form for a top-up. */
export interface BillingSearch {
  readonly tab?: Exclude<BillingTab, 'balance'>
  readonly topup?: true
}
