import { infiniteQueryOptions } from '@tanstack/react-query'
import { api } from '../../api/call.ts'

/** What the address of the list of workspaces says, and what it asks for. */

export const workspaceStates = ['active', 'archived'] as const
export const workspaceSorts = ['created', 'name'] as const

/** The filters of the list, as the gateway takes them. */
export interface WorkspaceFilterValues {
  readonly q?: string
  readonly state?: (typeof workspaceStates)[number]
  readonly sort?: (typeof workspaceSorts)[number]
}

/** `workspace` opens one workspace beside the list, and `new` the form for a new one. */
export interface WorkspacesSearch extends WorkspaceFilterValues {
  readonly workspace?: number
  readonly new?: true
}

const pageSize = 100

/** The read of the workspaces that the filters choose, a page at a time. The route begins it while the page's own file loads. */
export const workspacesQuery = (filters: WorkspaceFilterValues) =>
  infiniteQueryOptions({
    queryKey: ['listWorkspaces', 'pages', filters],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam, signal }) =>
      api('listWorkspaces', { query: { limit: pageSize, ...filters, ...(pageParam === undefined ? {} : { cursor: pageParam }) }, signal }),
    getNextPageParam: page => page.next_cursor ?? undefined,
  })
