import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { rootRoute } from '../../app/root-route.tsx'

/** `new` opens the form for another endpoint. */
interface WebhooksSearch {
  readonly new?: true
}

export const webhooksRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/webhooks',
  validateSearch: (search: Record<string, unknown>): WebhooksSearch => (search['new'] ? { new: true } : {}),
  component: lazyRouteComponent(() => import('./webhooks-page.tsx'), 'WebhooksPage'),
})
