import { infiniteQueryOptions } from '@tanstack/react-query'
import { api } from '../../../api/call.ts'
import type { ConnectClient } from '../../connect/text.ts'

/** What the address of the list of keys says, and what it asks for. */

export const keyStates = ['active', 'notice', 'disabled', 'disabled_inactive', 'expired', 'owner_left', 'revoked'] as const
export const keySorts = ['created', 'name', 'last_used'] as const

/** The filters of the list, as the gateway takes them. */
export interface KeyFilterValues {
  readonly q?: string
  readonly state?: (typeof keyStates)[number]
  /** The id of a member, or `me`. */
  readonly owner?: string
  readonly sort?: (typeof keySorts)[number]
}

/** `key` opens one key beside the list, `new` the form for a new one, and `connect` the way to connect a client. */
export interface KeysSearch extends KeyFilterValues {
  readonly key?: number
  readonly new?: true
  readonly connect?: ConnectClient
}

const pageSize = 100

/** The read of the keys that the filters choose, a page at a time. The route begins it while the page's own file loads. */
export const keysQuery = (filters: KeyFilterValues) =>
  infiniteQueryOptions({
    queryKey: ['listKeys', 'pages', filters],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam, signal }) =>
      api('listKeys', { query: { limit: pageSize, ...filters, ...(pageParam === undefined ? {} : { cursor: pageParam }) }, signal }),
    getNextPageParam: page => page.next_cursor ?? undefined,
  })
