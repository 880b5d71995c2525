import { infiniteQueryOptions } from '@tanstack/react-query'
import { api, type ReplyOf } from '../../api/call.ts'

/** What the address of the list of runs says, and what it asks for. */

export const runStates = ['active', 'held', 'idle', 'ended'] as const
export type RunState = (typeof runStates)[number]
export type Run = ReplyOf<'listRunsConsole'>['runs'][number]

/** The filters of the list. `agent` is the id of an agent whose family the runs belong to. */
export interface RunsSearch {
  readonly q?: string
  readonly state?: RunState
  readonly agent?: number
}

const pageSize = 50

/** Reads the runs that the filters choose, a page at a time. The route begins it while the page's own file loads. */
export const runsQuery = ({ q, state, agent }: RunsSearch) =>
  infiniteQueryOptions({
    queryKey: ['listRunsConsole', 'pages', { q, state, agent }],
    initialPageParam: '',
    queryFn: ({ pageParam, signal }) =>
      api('listRunsConsole', {
        query: {
          limit: pageSize,
          ...(q === undefined ? {} : { q }),
          ...(state === undefined ? {} : { state }),
          ...(agent === undefined ? {} : { agent_id: agent }),
          ...(pageParam === '' ? {} : { cursor: pageParam }),
        },
        signal,
      }),
    getNextPageParam: page => page.next_cursor ?? undefined,
  })

/** Names the owner of a run in a query of the gateway. */
export const ownerOf = ({ agent_id: agent, key_id: key }: Pick<Run, 'agent_id' | 'key_id'>) =>
  agent !== null ? { agent_id: agent } : key !== null ? { key_id: key } : {}

/** The address of the page of a run. */
export const placeOf = ({ run_id: id, agent_id: agent, key_id: key }: Pick<Run, 'run_id' | 'agent_id' | 'key_id'>) => ({
  to: '/runs/one' as const,
  search: { id, ...(agent === null ? {} : { agent }), ...(key === null ? {} : { key }) },
})
