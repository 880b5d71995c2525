import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { queryClient } from '../../api/queries.ts'
import { rootRoute } from '../../app/root-route.tsx'
import { type AgentsSearch, agentSorts, agentStates, agentsQuery, nearEndPercent } from './search.ts'

const queryMax = 100
const idOr = (value: unknown, word: string): string | undefined => (value === word || /^[1-9]\d{0,9}$/.test(String(value ?? '')) ? String(value) : undefined)

export const agentsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/agents',
  validateSearch: (search: Record<string, unknown>): AgentsSearch => {
    const q = ['string', 'number', 'boolean'].includes(typeof search['q']) ? String(search['q']).slice(0, queryMax) : ''
    const state = agentStates.find(one => one === search['state'])
    const isNearEnd = Number(search['budget_used_percent']) === nearEndPercent
    const sort = isNearEnd ? undefined : agentSorts.find(one => one === search['sort'])
    const [owner, parent] = [idOr(search['owner'], 'me'), idOr(search['parent'], 'none')]
    return {
      ...(q === '' ? {} : { q }),
      ...(state === undefined ? {} : { state }),
      ...(owner === undefined ? {} : { owner }),
      ...(parent === undefined ? {} : { parent }),
      ...(isNearEnd ? { budget_used_percent: nearEndPercent } : {}),
      ...(sort === undefined || sort === 'created' ? {} : { sort }),
      ...(search['new'] ? { new: true as const } : {}),
    }
  },
  loaderDeps: ({ search: { new: _, ...filters } }) => filters,
  loader: ({ deps, preload }) => void (preload || queryClient.prefetchInfiniteQuery(agentsQuery(deps))),
  component: lazyRouteComponent(() => import('./agents-page.tsx'), 'AgentsPage'),
})
