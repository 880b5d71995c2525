import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { apiQuery, queryClient } from '../../api/queries.ts'
import { rootRoute } from '../../app/root-route.tsx'
import { istDay } from '../../ui/format/dates.ts'
import { given, readActivitySearch } from '../activity/filters.ts'
import { groups, metrics } from './metrics.ts'
import { queryOf, type UsageSearch } from './search.ts'

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
  loaderDeps: ({ search }) => search,
  loader: ({ deps, preload }) => void (preload || queryClient.prefetchQuery(apiQuery('activity', { query: queryOf(deps, istDay(Date.now())) }))),
  component: lazyRouteComponent(() => import('./usage-page.tsx'), 'UsagePage'),
})
