import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { rootRoute } from '../../app/root-route.tsx'
import { type HealthSearch, orgSorts } from './search.ts'

const queryMax = 100

export const healthRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/health',
  validateSearch: (search: Record<string, unknown>): HealthSearch => {
    const q = ['string', 'number', 'boolean'].includes(typeof search['q']) ? String(search['q']).slice(0, queryMax) : ''
    const sort = orgSorts.find(one => one === search['sort'])
    return { ...(q === '' ? {} : { q }), ...(sort === undefined || sort === 'newest' ? {} : { sort }) }
  },
  component: lazyRouteComponent(() => import('./health-page.tsx'), 'HealthPage'),
})
