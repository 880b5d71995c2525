import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { queryClient } from '../../api/queries.ts'
import { rootRoute } from '../../app/root-route.tsx'
import { type RunsSearch, runStates, runsQuery } from './search.ts'

const queryMax = 100
const idOf = (value: unknown): number | null => (Number.isSafeInteger(Number(value)) && Number(value) > 0 ? Number(value) : null)

export const runsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/runs',
  validateSearch: (search: Record<string, unknown>): RunsSearch => {
    const q = ['string', 'number', 'boolean'].includes(typeof search['q']) ? String(search['q']).slice(0, queryMax) : ''
    const state = runStates.find(one => one === search['state'])
    const agent = idOf(search['agent'])
    return { ...(q === '' ? {} : { q }), ...(state === undefined ? {} : { state }), ...(agent === null ? {} : { agent }) }
  },
  loaderDeps: ({ search }) => search,
  loader: ({ deps, preload }) => void (preload || queryClient.prefetchInfiniteQuery(runsQuery(deps))),
  component: lazyRouteComponent(() => import('./runs-page.tsx'), 'RunsPage'),
})
