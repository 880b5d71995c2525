import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { apiQuery, queryClient } from '../../api/queries.ts'
import { rootRoute } from '../../app/root-route.tsx'
import type { ServersSearch } from './own-server.ts'

export const serversRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/servers',
  validateSearch: (search: Record<string, unknown>): ServersSearch => {
    const id = Number(search['server'])
    return { ...(Number.isSafeInteger(id) && id > 0 ? { server: id } : {}), ...(search['new'] ? { new: true as const } : {}) }
  },
  loader: ({ preload }) => void (preload || queryClient.prefetchQuery(apiQuery('listCustomEndpoints'))),
  component: lazyRouteComponent(() => import('./servers-page.tsx'), 'ServersPage'),
})
