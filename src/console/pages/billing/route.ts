import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { rootRoute } from '../../app/root-route.tsx'

export const billingTabs = ['balance', 'invoices', 'details'] as const
export type BillingTab = (typeof billingTabs)[number]

/** `topup` opens the form for a top-up. */
export interface BillingSearch {
  readonly tab?: Exclude<BillingTab, 'balance'>
  readonly topup?: true
}

export const billingRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/billing',
  validateSearch: (search: Record<string, unknown>): BillingSearch => {
    const tab = billingTabs.find(one => one === search['tab'])
    return { ...(tab === undefined || tab === 'balance' ? {} : { tab }), ...(search['topup'] ? { topup: true as const } : {}) }
  },
  component: lazyRouteComponent(() => import('./billing-page.tsx'), 'BillingPage'),
})
