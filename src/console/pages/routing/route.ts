import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { queryClient } from '../../api/queries.ts'
import { rootRoute } from '../../app/root-route.tsx'
import { chainsQuery, type RoutingSearch } from './search.ts'

const queryMax = 100
const modelMax = 256
const textOf = (value: unknown, max: number): string => (['string', 'number', 'boolean'].includes(typeof value) ? String(value).slice(0, max) : '')

export const routingRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/routing',
  validateSearch: (search: Record<string, unknown>): RoutingSearch => {
    const [q, model] = [textOf(search['q'], queryMax), textOf(search['model'], modelMax)]
    return {
      ...(search['tab'] === 'preview' ? { tab: 'preview' as const } : {}),
      ...(q === '' ? {} : { q }),
      ...(model === '' ? {} : { model }),
      ...(search['new'] ? { new: true as const } : {}),
    }
  },
  loaderDeps: ({ search: { q } }) => (q === undefined ? {} : { q }),
  loader: ({ deps, preload }) => void (preload || queryClient.prefetchInfiniteQuery(chainsQuery(deps))),
  component: lazyRouteComponent(() => import('./routing-page.tsx'), 'RoutingPage'),
})
