import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { queryClient } from '../../api/queries.ts'
import { rootRoute } from '../../app/root-route.tsx'
import { istDay } from '../../ui/format/dates.ts'
import { given, readActivitySearch, readName } from '../activity/filters.ts'
import { spanOf } from '../activity/span.ts'
import { type CallsSearch, callsQuery, queryOf, refusedQuery } from './search.ts'
import { kindNames, outcomeNames } from './text.ts'

const idMaxChars = 100
const readRequestId = (value: unknown): string | undefined => readName(value)?.slice(0, idMaxChars)

export const callsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/calls',
  validateSearch: (search: Record<string, unknown>): CallsSearch => ({
    ...readActivitySearch(search),
    ...given({
      outcome: outcomeNames.find(one => one === search['outcome']),
      kind: kindNames.find(one => one === search['kind']),
      request_id: readRequestId(search['request_id']),
      call: readRequestId(search['call']),
      live: search['live'] ? (true as const) : undefined,
      refused: search['refused'] ? (true as const) : undefined,
    }),
  }),
  loaderDeps: ({ search: { call: _, live: __, ...asked } }) => asked,
  loader: ({ deps, preload }) => {
    if (preload) return
    const span = spanOf(deps, istDay(Date.now()))
    void (deps.refused ? queryClient.prefetchInfiniteQuery(refusedQuery(deps, span)) : queryClient.prefetchInfiniteQuery(callsQuery(queryOf(deps, span))))
  },
  component: lazyRouteComponent(() => import('./calls-page.tsx'), 'CallsPage'),
})
