import { infiniteQueryOptions } from '@tanstack/react-query'
import { api } from '../../api/call.ts'

/** What the address of the list of members says, and what it asks for. */

export const memberStates = ['active', 'invited'] as const
export const memberRoles = ['owner', 'admin', 'member'] as const
export const memberSorts = ['created', 'name', 'email'] as const
export type MemberRole = (typeof memberRoles)[number]

/** The filters of the list, as the gateway takes them. */
export interface MemberFilterValues {
  readonly q?: string
  readonly state?: (typeof memberStates)[number]
  readonly role?: MemberRole
  readonly sort?: (typeof memberSorts)[number]
}

/** `member` opens one member beside the list, and `invite` the form that invites people. */
export interface MembersSearch extends MemberFilterValues {
  readonly member?: number
  readonly invite?: true
}

const pageSize = 100

/** The read of the members that the filters choose, a page at a time. The first page also has the open invitations. */
export const membersQuery = (filters: MemberFilterValues) =>
  infiniteQueryOptions({
    queryKey: ['listMembers', 'pages', filters],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam, signal }) =>
      api('listMembers', { query: { limit: pageSize, ...filters, ...(pageParam === undefined ? {} : { cursor: pageParam }) }, signal }),
    getNextPageParam: page => page.next_cursor ?? undefined,
  })
