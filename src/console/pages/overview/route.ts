import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { apiQuery, queryClient } from '../../api/queries.ts'
import { rootRoute } from '../../app/root-route.tsx'
import { istDay } from '../../ui/format/dates.ts'
import { spanOf } from './figures.ts'
import { type Metric, metrics } from './metric.ts'

export const overviewRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/',
  validateSearch: (search: Record<string, unknown>): { metric?: Metric } => {
    const metric = metrics.find(one => one === search['metric'])
    return metric === undefined ? {} : { metric }
  },
  loader: ({ preload }) => void (preload || queryClient.prefetchQuery(apiQuery('activity', { query: spanOf(istDay(Date.now())) }))),
  component: lazyRouteComponent(() => import('./overview-page.tsx'), 'OverviewPage'),
})
