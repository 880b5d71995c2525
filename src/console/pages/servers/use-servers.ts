import { useMutation, useQuery } from '@tanstack/react-query'
import { apiErrorOf } from '../../api/api-error.ts'
import { api, type CallOptions } from '../../api/call.ts'
import { apiQuery, invalidate } from '../../api/queries.ts'
import { toast } from '../../ui/overlays/toast.tsx'
import type { OwnServer } from './own-server.ts'
import { text } from './text.ts'

export type ServerBody = CallOptions<'createCustomEndpoint'>['body']
export type ServerChanges = CallOptions<'changeCustomEndpoint'>['body']

/** Returns the own servers of the organisation. It has at most 50, so the list has no pages. */
export const useServers = () => useQuery({ ...apiQuery('listCustomEndpoints'), select: ({ endpoints }) => endpoints })

/** Reads again what pages show of own servers. */
export const serversChanged = (): Promise<void> => invalidate('listCustomEndpoints', 'previewRoute')

/** Tests a registered server again. Its result is kept, and the server stays in service. */
export function useRetest({ id, name }: Pick<OwnServer, 'id' | 'name'>) {
  return useMutation({
    mutationFn: () => api('retestCustomEndpoint', { path: { id } }),
    onSuccess: async ({ ok }) => {
      await serversChanged()
      toast(ok ? text.retested(name) : text.retestFailed(name), ok ? 'good' : 'bad')
    },
    onError: error => toast(apiErrorOf(error).message, 'bad'),
  })
}
