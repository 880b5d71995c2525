import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { rootRoute } from '../../app/root-route.tsx'
import type { WorkloadsSearch } from './search.ts'

export const workloadsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/workloads',
  validateSearch: (search: Record<string, unknown>): WorkloadsSearch => {
    const rule = Number(search['rule'])
    return {
      ...(search['tab'] === 'test' ? { tab: 'test' as const } : {}),
      ...(Number.isSafeInteger(rule) && rule > 0 ? { rule } : {}),
      ...(search['new'] ? { new: true as const } : {}),
    }
  },
  component: lazyRouteComponent(() => import('./workloads-page.tsx'), 'WorkloadsPage'),
})
