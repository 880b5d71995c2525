import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { apiQuery, queryClient } from '../../../api/queries.ts'
import { rootRoute } from '../../../app/root-route.tsx'
import { type OneSearch, oneTabs } from '../search.ts'

export const collectionRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/collections/$id',
  validateSearch: (search: Record<string, unknown>): OneSearch => {
    const tab = oneTabs.find(one => one === search['tab'])
    const version = Number(search['version'])
    return {
      ...(tab === undefined || tab === 'steps' ? {} : { tab }),
      ...(Number.isSafeInteger(version) && version > 0 ? { version } : {}),
    }
  },
  loader: ({ params: { id }, preload }) => void (preload || queryClient.prefetchQuery(apiQuery('getCollection', { path: { id } }))),
  component: lazyRouteComponent(() => import('./collection-page.tsx'), 'CollectionPage'),
})
