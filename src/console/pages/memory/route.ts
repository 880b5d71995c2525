import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { apiQuery, queryClient } from '../../api/queries.ts'
import { rootRoute } from '../../app/root-route.tsx'
import { searchOf } from './search-params.ts'

/** The path after /memory is the key of an object or of a folder, so that every object has a link. */
export const memoryRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/memory/$',
  validateSearch: searchOf,
  loader: ({ preload }) => void (preload || queryClient.prefetchQuery(apiQuery('pathsConsole'))),
  component: lazyRouteComponent(() => import('./memory-page.tsx'), 'MemoryPage'),
})
