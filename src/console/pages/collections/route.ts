import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { queryClient } from '../../api/queries.ts'
import { rootRoute } from '../../app/root-route.tsx'
import { type CollectionsSearch, collectionsQuery } from './search.ts'

const slugMax = 256

export const collectionsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/collections',
  validateSearch: (search: Record<string, unknown>): CollectionsSearch => {
    const slug = ['string', 'number'].includes(typeof search['slug']) ? String(search['slug']).slice(0, slugMax) : ''
    return {
      ...(search['tab'] === 'public' ? { tab: 'public' as const } : {}),
      ...(slug === '' ? {} : { slug }),
      ...(search['new'] ? { new: true as const } : {}),
    }
  },
  loader: ({ preload }) => void (preload || queryClient.prefetchInfiniteQuery(collectionsQuery)),
  component: lazyRouteComponent(() => import('./collections-page.tsx'), 'CollectionsPage'),
})
