import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { rootRoute } from '../../app/root-route.tsx'
import { type ActivitySearch, given, readActivitySearch } from '../activity/filters.ts'
import { type Group, groups, type Metric, metrics } from './metrics.ts'

/** The span and the filters, and what the chart and the table show. */
export type UsageSearch = ActivitySearch & {
  readonly metric?: Metric
  readonly group?: Group
  readonly unit?: 'day' | 'hour'
}

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
