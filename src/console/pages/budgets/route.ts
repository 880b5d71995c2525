import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { apiQuery, queryClient } from '../../api/queries.ts'
import { hasRole } from '../../app/me.tsx'
import { rootRoute } from '../../app/root-route.tsx'
import { type BudgetsSearch, budgetScopes, budgetStates, budgetsQuery } from './search.ts'

const queryMax = 100
const budgetShape = /^(org|workspace|member|key|agent):[1-9]\d{0,9}(:(ever|week|day))?$/

export const budgetsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/budgets',
  validateSearch: (search: Record<string, unknown>): BudgetsSearch => {
    const q = ['string', 'number', 'boolean'].includes(typeof search['q']) ? String(search['q']).slice(0, queryMax) : ''
    const state = budgetStates.find(one => one === search['state'])
    const scope = budgetScopes.find(one => one === search['scope'])
    const budget = String(search['budget'] ?? '')
    return {
      ...(q === '' ? {} : { q }),
      ...(state === undefined ? {} : { state }),
      ...(scope === undefined ? {} : { scope }),
      ...(budgetShape.test(budget) ? { budget } : {}),
      ...(search['new'] ? { new: true as const } : {}),
    }
  },
  loaderDeps: ({ search: { budget: _, new: __, ...filters } }) => filters,
  loader: ({ deps, preload }) => {
    // The gateway refuses the list to members, who get a page that says whom to ask.
    const me = queryClient.getQueryData(apiQuery('me').queryKey)
    if (!preload && me !== undefined && hasRole(me, 'admin')) void queryClient.prefetchInfiniteQuery(budgetsQuery(deps))
  },
  component: lazyRouteComponent(() => import('./budgets-page.tsx'), 'BudgetsPage'),
})
