import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { rootRoute } from '../../app/root-route.tsx'
import { type BillingSearch, billingTabs } from './search.ts'

export const billingRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/billing',
  validateSearch: (search: Record<string, unknown>): BillingSearch => {
    const tab = billingTabs.find(one => one === search['tab'])
    return { ...(tab === undefined || tab === 'balance' ? {} : { tab }), ...(search['topup'] ? { topup: true as const } : {}) }
  },
  component: lazyRouteComponent(() => import('./billing-page.tsx'), 'BillingPage'),
})
