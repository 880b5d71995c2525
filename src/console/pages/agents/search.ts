import { infiniteQueryOptions } from '@tanstack/react-query'
import { api } from '../../api/call.ts'

/** What the address of the list of agents says, and what it asks for. */

export const agentStates = ['active', 'paused', 'revoked'] as const
export const agentSorts = ['created', 'name', 'last_call', 'spend'] as const

/** The share of a budget, in percent, from which it is about to end. */
export const nearEndPercent = 80

/** The filters of the list, as the gateway takes them. `new` opens the form for a new agent. */
export interface AgentsSearch {
  readonly q?: string
  readonly state?: (typeof agentStates)[number]
  /** The id of a member, or `me`. */
  readonly owner?: string
  /** The id of the agent above, or `none`. */
  readonly parent?: string
  /** The share of its monthly budget that an agent has spent, in percent. The gateway then sorts by spend. */
  readonly budget_used_percent?: typeof nearEndPercent
  readonly sort?: (typeof agentSorts)[number]
  readonly new?: true
}

const pageSize = 50

/** The read of the agents that the filters choose, a page at a time. The route begins it while the page's own file loads. */
export const agentsQuery = (query: Omit<AgentsSearch, 'new'>) =>
  infiniteQueryOptions({
    queryKey: ['listAgentsConsole', 'pages', query],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam, signal }) =>
      api('listAgentsConsole', { query: { limit: pageSize, ...query, ...(pageParam === undefined ? {} : { cursor: pageParam }) }, signal }),
    getNextPageParam: page => page.next_cursor ?? undefined,
  })
