import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { apiQuery, queryClient } from '../../api/queries.ts'
import { rootRoute } from '../../app/root-route.tsx'
import { type ProvidersSearch, providerStates } from './search.ts'

const textMax = 100
const textOf = (value: unknown): string | undefined => (['string', 'number'].includes(typeof value) ? String(value).slice(0, textMax) : undefined)

export const providersRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/providers',
  validateSearch: (search: Record<string, unknown>): ProvidersSearch => {
    const [q, provider, add] = [textOf(search['q']), textOf(search['provider']), textOf(search['add'])]
    const state = providerStates.find(one => one === search['state'])
    return {
      ...(q === undefined || q === '' ? {} : { q }),
      ...(state === undefined ? {} : { state }),
      ...(provider === undefined || provider === '' ? {} : { provider }),
      ...(add === undefined ? {} : { add }),
    }
  },
  loader: ({ preload }) => {
    if (preload) return
    void queryClient.prefetchQuery(apiQuery('listProviders'))
    void queryClient.prefetchQuery(apiQuery('listProviderKeys'))
  },
  component: lazyRouteComponent(() => import('./providers-page.tsx'), 'ProvidersPage'),
})
