import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { rootRoute } from '../../../app/root-route.tsx'
import type { WebhookSearch } from './search.ts'

const deliveryShape = /^dlv_[0-9a-z]{1,64}$/

export const webhookRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/webhooks/$id',
  validateSearch: (search: Record<string, unknown>): WebhookSearch => {
    const delivery = String(search['delivery'] ?? '')
    return { ...(search['tab'] === 'settings' ? { tab: 'settings' as const } : {}), ...(deliveryShape.test(delivery) ? { delivery } : {}) }
  },
  component: lazyRouteComponent(() => import('./webhook-page.tsx'), 'WebhookPage'),
})
