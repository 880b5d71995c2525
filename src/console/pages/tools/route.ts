import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { apiQuery, queryClient } from '../../api/queries.ts'
import { rootRoute } from '../../app/root-route.tsx'
import { outcomeNames } from '../calls/text.ts'
import { type ToolsSearch, toolsTabs } from './search.ts'

const slugShape = /^[a-z][a-z0-9-]{0,15}$/

export const toolsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/tools',
  validateSearch: (search: Record<string, unknown>): ToolsSearch => {
    const tab = toolsTabs.find(one => one === search['tab'])
    const outcome = outcomeNames.find(one => one === search['outcome'])
    const server = String(search['server'] ?? '')
    return {
      ...(tab === undefined || tab === 'servers' ? {} : { tab }),
      ...(slugShape.test(server) ? { server } : {}),
      ...(outcome === undefined ? {} : { outcome }),
      ...(search['new'] ? { new: true as const } : {}),
    }
  },
  loader: ({ preload }) => void (preload || queryClient.prefetchQuery(apiQuery('listToolServers'))),
  component: lazyRouteComponent(() => import('./tools-page.tsx'), 'ToolsPage'),
})
