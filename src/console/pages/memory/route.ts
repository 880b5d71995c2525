import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { rootRoute } from '../../app/root-route.tsx'
import { searchOf } from './search-params.ts'

/** The path after /memory is the key of an object or of a folder, so that every object has a link. */
export const memoryRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/memory/$',
  validateSearch: searchOf,
  component: lazyRouteComponent(() => import('./memory-page.tsx'), 'MemoryPage'),
})
