import { infiniteQueryOptions } from '@tanstack/react-query'
import { api, type CallOptions } from '../../api/call.ts'
import type { ActivitySearch } from '../activity/filters.ts'
import { filtersOf } from '../activity/filters.ts'
import type { Span } from '../activity/span.ts'
import type { Kind, Outcome } from './text.ts'

/** The span and the filters, the search, and the call that is open beside the list. */
export type CallsSearch = ActivitySearch & {
  readonly outcome?: Outcome
  readonly kind?: Kind
  /** The search by request id. */
  readonly request_id?: string
  /** The request id of the open call. */
  readonly call?: string
  readonly live?: true
  /** True: the calls that were refused, instead of those that reached a provider. */
  readonly refused?: true
}

/** What the list of calls is asked for. */
export type Query = NonNullable<NonNullable<CallOptions<'activityEvents'>>['query']>

const pageSize = 100

/** Returns what to ask for. A request is searched on all days and whatever else is filtered. */
export function queryOf(search: CallsSearch, span: Span): Query {
  if (search.request_id !== undefined) return { request_id: search.request_id }
  const { outcome, kind } = search
  return { ...span, ...filtersOf(search), ...(outcome === undefined ? {} : { outcome }), ...(kind === undefined ? {} : { kind }) }
}

/** The read of the refused calls of a span. Of the filters, the key and the agent apply. */
export function refusedQuery(search: CallsSearch, { from }: Span) {
  const { key_id: key, agent_id: agent } = search
  const query = { from, ...(typeof key === 'number' ? { key_id: key } : {}), ...(agent === undefined ? {} : { agent_id: agent }) }
  return infiniteQueryOptions({
    queryKey: ['listRefusedCallsConsole', 'pages', query],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam, signal }) =>
      api('listRefusedCallsConsole', { query: { ...query, limit: pageSize, ...(pageParam === undefined ? {} : { cursor: pageParam }) }, signal }),
    getNextPageParam: page => page.next_cursor ?? undefined,
  })
}

/** The read of the calls that the filters choose, a page at a time. The route begins it while the page's own file loads. */
export const callsQuery = (query: Query) =>
  infiniteQueryOptions({
    queryKey: ['activityEvents', 'pages', query],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam, signal }) =>
      api('activityEvents', { query: { ...query, limit: pageSize, ...(pageParam === undefined ? {} : { before: pageParam }) }, signal }),
    getNextPageParam: page => page.next_before ?? undefined,
  })
