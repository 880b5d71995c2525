import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query'
import { api, type ReplyOf } from '../../api/call.ts'
import type { AuditFilters } from './search.ts'

export type AuditLine = ReplyOf<'audit'>['entries'][number]

const pageSize = 100

/** Returns the lines that the filters choose, in the pages that were read so far. A page with filters may be short, because the gateway looks at a part of the trail in one step. */
export function useAudit(filters: AuditFilters) {
  return useInfiniteQuery({
    queryKey: ['audit', 'pages', filters],
    placeholderData: keepPreviousData,
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam, signal }) =>
      api('audit', { query: { limit: pageSize, ...filters, ...(pageParam === undefined ? {} : { before: pageParam }) }, signal }),
    getNextPageParam: page => (page.next_before === null ? undefined : String(page.next_before)),
    select: data => data.pages.flatMap(({ entries }) => entries),
  })
}
