import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { rootRoute } from '../../app/root-route.tsx'
import { type ActivitySearch, given, readActivitySearch, readName } from '../activity/filters.ts'
import { type Kind, kindNames, type Outcome, outcomeNames } from './text.ts'

/** The span and the filters, the search, and the call that is open beside the list. */
export type CallsSearch = ActivitySearch & {
  readonly outcome?: Outcome
  readonly kind?: Kind
  /** The search by request id. */
  readonly request_id?: string
  /** The request id of the open call. */
  readonly call?: string
  readonly live?: true
}

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
