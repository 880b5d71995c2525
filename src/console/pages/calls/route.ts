import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { rootRoute } from '../../app/root-route.tsx'
import { given, readActivitySearch, readName } from '../activity/filters.ts'
import type { CallsSearch } from './search.ts'
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
    }),
  }),
  component: lazyRouteComponent(() => import('./calls-page.tsx'), 'CallsPage'),
})
