import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { api, type CallOptions, type ReplyOf } from '../../api/call.ts'
import { apiQuery } from '../../api/queries.ts'
import type { ComboOption } from '../../ui/forms/combobox.tsx'

export type TrustRule = ReplyOf<'listTrust'>['rules'][number]
export type TrustBody = CallOptions<'createTrust'>['body']

/** Returns the rules in the pages that were read so far. An organisation has at most 100, and long keys make a page shorter. */
export function useTrust() {
  return useInfiniteQuery({
    queryKey: ['listTrust', 'pages'],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam, signal }) => api('listTrust', { query: pageParam === undefined ? {} : { cursor: pageParam }, signal }),
    getNextPageParam: page => page.next_cursor ?? undefined,
    select: data => data.pages.flatMap(({ rules }) => rules),
  })
}

/** Returns the name of an agent. Until it is read, and when it is gone, it returns its number. */
export function useAgentName(id: number): string {
  const agent = useQuery(apiQuery('getAgentConsole', { path: { id } }))
  return agent.data?.name ?? `agent ${id}`
}

const foundMax = 20

/** Finds active agents by a part of their name. */
export async function findAgents(text: string, signal: AbortSignal): Promise<readonly ComboOption[]> {
  const q = text.trim()
  const { agents } = await api('listAgentsConsole', { query: { state: 'active', limit: foundMax, ...(q === '' ? {} : { q }) }, signal })
  return agents.map(({ id, name }) => ({ value: String(id), label: name }))
}

/** Finds own keys that may do everything, by a part of their name. Only such keys bind the tokens of a rule. */
export async function findFullKeys(text: string, signal: AbortSignal): Promise<readonly ComboOption[]> {
  const q = text.trim()
  const { keys } = await api('listKeys', { query: { state: 'active', owner: 'me', limit: 100, ...(q === '' ? {} : { q }) }, signal })
  return keys.filter(({ scope }) => scope === 'full').map(({ id, name, prefix }) => ({ value: String(id), label: name, hint: `${prefix}…` }))
}
