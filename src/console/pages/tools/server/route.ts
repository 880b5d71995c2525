import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { apiQuery, queryClient } from '../../../api/queries.ts'
import { rootRoute } from '../../../app/root-route.tsx'
import { pinStates, type ServerSearch, serverTabs } from '../search.ts'

const nameShape = /^[a-z][a-z0-9-]{0,15}__[A-Za-z0-9_-]{1,62}$/

export const toolServerRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/tools/$id',
  validateSearch: (search: Record<string, unknown>): ServerSearch => {
    const tab = serverTabs.find(one => one === search['tab'])
    const state = pinStates.find(one => one === search['state'])
    const tool = String(search['tool'] ?? '')
    return {
      ...(tab === undefined || tab === 'tools' ? {} : { tab }),
      ...(state === undefined ? {} : { state }),
      ...(nameShape.test(tool) ? { tool } : {}),
    }
  },
  loader: ({ preload }) => void (preload || queryClient.prefetchQuery(apiQuery('listToolServers'))),
  component: lazyRouteComponent(() => import('./server-page.tsx'), 'ToolServerPage'),
})
