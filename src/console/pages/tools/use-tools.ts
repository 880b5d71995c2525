import { keepPreviousData, useInfiniteQuery, useMutation, useQuery } from '@tanstack/react-query'
import { apiErrorOf } from '../../api/api-error.ts'
import { api, type CallOptions, type ReplyOf } from '../../api/call.ts'
import { apiQuery, invalidate } from '../../api/queries.ts'
import { toast } from '../../ui/overlays/toast.tsx'

export type ToolServer = ReplyOf<'listToolServers'>['servers'][number]
export type AuthKind = ToolServer['auth']['kind']
export type Pin = ReplyOf<'listServerTools'>['tools'][number]
export type PinState = Pin['state']
export type PinDetail = ReplyOf<'getServerTool'>['tool']
export type Connection = ReplyOf<'listToolConnections'>['connections'][number]
export type ServerBody = CallOptions<'createToolServer'>['body']

const pageSize = 100

/** Returns the MCP servers of the organisation. An organisation has few, so the list has no pages. */
export const useToolServers = () => useQuery({ ...apiQuery('listToolServers'), select: ({ servers }) => servers })

/** Returns the tools of a server in the pages that were read so far. They are read again when the list of servers reports other counts or another read. */
export function usePins({ id: serverId, tools: counts, last_sync_at: readAt }: ToolServer, state: PinState | undefined) {
  const filter = state === undefined ? {} : { state }
  return useInfiniteQuery({
    queryKey: ['listServerTools', 'pages', serverId, filter, counts, readAt],
    placeholderData: keepPreviousData,
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam, signal }) =>
      api('listServerTools', {
        path: { id: serverId },
        query: { limit: pageSize, ...filter, ...(pageParam === undefined ? {} : { cursor: pageParam }) },
        signal,
      }),
    getNextPageParam: page => page.next_cursor ?? undefined,
    select: data => data.pages.flatMap(({ tools }) => tools),
  })
}

/** Reads again what pages show of MCP servers and their tools. */
export const toolsChanged = (): Promise<void> => invalidate('listToolServers', 'listServerTools', 'getServerTool', 'listToolConnections', 'previewAgentTools')

/** Begins a connection of the person with a server. The browser leaves for the issuer, and comes back. */
export function useConnect() {
  return useMutation({
    mutationFn: (id: string) => api('connectToolServer', { path: { id } }),
    onSuccess: ({ authorization_url: url }) => location.assign(url),
    onError: error => toast(apiErrorOf(error).message, 'bad'),
  })
}

/** The number of tools of a server that wait for a person. */
export const waitingOf = ({ tools }: Pick<ToolServer, 'tools'>): number => tools.pending + tools.changed
