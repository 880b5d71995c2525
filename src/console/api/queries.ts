import { QueryClient, queryOptions } from '@tanstack/react-query'
import { apiErrorOf, mayPass } from './api-error.ts'
import { api, type CallOptions, type OperationName, type OptionsArgument, type ReplyOf } from './call.ts'

const freshMs = 15_000
const retriesMax = 2

/** The cache of everything that the console has read. It is emptied when the organisation of the session changes. */
export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: freshMs,
      retry: (failures, error) => failures < retriesMax && mayPass(apiErrorOf(error)),
      // A gateway on this computer also answers without a network.
      networkMode: 'always',
    },
    mutations: { networkMode: 'always' },
  },
})

/** Returns a read for `useQuery`. Its key begins with the name of the operation, so `invalidate(name)` reads it again. */
export function apiQuery<N extends OperationName>(name: N, ...[options]: OptionsArgument<N>) {
  return queryOptions<ReplyOf<N>>({
    queryKey: [name, options ?? {}],
    queryFn: ({ signal }) => api(name, ...([{ ...options, signal } as CallOptions<N>] as unknown as OptionsArgument<N>)),
  })
}

/** Reads again what pages show of these operations. */
export async function invalidate(...names: readonly OperationName[]): Promise<void> {
  await Promise.all(names.map(name => queryClient.invalidateQueries({ queryKey: [name] })))
}
