import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { rootRoute } from '../../app/root-route.tsx'
import { given, readActivitySearch } from '../activity/filters.ts'
import { groups, metrics } from './metrics.ts'
import type { UsageSearch } from './search.ts'

export const usageRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/usage',
  validateSearch: (search: Record<string, unknown>): UsageSearch => ({
    ...readActivitySearch(search),
    ...given({
      metric: metrics.find(one => one === search['metric']),
      group: groups.find(one => one === search['group']),
      unit: (['day', 'hour'] as const).find(one => one === search['unit']),
    }),
  }),
  component: lazyRouteComponent(() => import('./usage-page.tsx'), 'UsagePage'),
})
