import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { rootRoute } from '../../../app/root-route.tsx'

const modelMax = 256

export const chainRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/routing/chain',
  validateSearch: (search: Record<string, unknown>): { readonly model: string } => ({
    model: ['string', 'number'].includes(typeof search['model']) ? String(search['model']).slice(0, modelMax) : '',
  }),
  component: lazyRouteComponent(() => import('./chain-page.tsx'), 'ChainPage'),
})
