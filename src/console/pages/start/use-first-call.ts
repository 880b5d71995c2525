import { useQuery } from '@tanstack/react-query'
import type { ReplyOf } from '../../api/call.ts'
import { apiQuery } from '../../api/queries.ts'
import { useMe } from '../../app/me.tsx'

export type Call = ReplyOf<'activityEvents'>['events'][number]

const askAgainMs = 2_000

/** Returns the query of the newest call of the agent, or of the person's keys when there is no agent. */
export const newestCall = (agent: number | undefined, uid: number | null) =>
  apiQuery('activityEvents', { query: { limit: 1, ...(agent !== undefined ? { agent_id: agent } : uid === null ? {} : { uid }) } })

/**
 * Returns the newest call that came after `after`, or null. It asks every two seconds until a call succeeds. A hint of the gateway that invalidates
 * `activityEvents` makes it ask sooner.
 */
export function useFirstCall(agent: number | undefined, after: string | undefined): Call | null {
  const me = useMe()
  const newest = useQuery({
    ...newestCall(agent, me.user.id),
    staleTime: 0,
    refetchInterval: ({ state }) => (state.data?.events.some(call => isNew(call, after) && call.outcome === 'ok') ? false : askAgainMs),
  })
  return newest.data?.events.find(call => isNew(call, after)) ?? null
}

const isNew = (call: Call, after: string | undefined): boolean => call.request_id !== after
