import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { rootRoute } from '../../app/root-route.tsx'
import { type Metric, metrics } from './metric.ts'

export const overviewRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/',
  validateSearch: (search: Record<string, unknown>): { metric?: Metric } => {
    const metric = metrics.find(one => one === search['metric'])
    return metric === undefined ? {} : { metric }
  },
  component: lazyRouteComponent(() => import('./overview-page.tsx'), 'OverviewPage'),
})
