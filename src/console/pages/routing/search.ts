import { infiniteQueryOptions } from '@tanstack/react-query'
import { api, type ReplyOf } from '../../api/call.ts'

/** What the address of the page of routing says, and what its list asks for. */

export const routingTabs = ['chains', 'preview'] as const
export type RoutingTab = (typeof routingTabs)[number]
export type Chain = ReplyOf<'listChains'>['chains'][number]

export interface RoutingSearch {
  readonly tab?: 'preview'
  /** A part of the model of a chain. */
  readonly q?: string
  /** The model of the preview. */
  readonly model?: string
  readonly new?: true
}

const pageSize = 100

/** Reads the chains of the organisation, a page at a time. */
export const chainsQuery = ({ q }: Pick<RoutingSearch, 'q'>) =>
  infiniteQueryOptions({
    queryKey: ['listChains', 'pages', { q }],
    initialPageParam: '',
    queryFn: ({ pageParam, signal }) =>
      api('listChains', { query: { limit: pageSize, ...(q === undefined ? {} : { q }), ...(pageParam === '' ? {} : { cursor: pageParam }) }, signal }),
    getNextPageParam: page => page.next_cursor ?? undefined,
  })
