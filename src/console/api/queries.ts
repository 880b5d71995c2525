import { QueryClient, queryOptions } from '@tanstack/react-query'
import { apiErrorOf, mayPass, tooOftenMs } from './api-error.ts'
import { api, type CallOptions, type OperationName, type OptionsArgument, type ReplyOf } from './call.ts'

const freshMs = 15_000
const retriesMax = 2
/** Number of times that a request is sent again after the gateway has said how long to wait. */
const waitsMax = 5
/** The pause before another try, doubled each time. */
const pauseMs = 1_000
/** Many consoles wait for the same minute to end, so each waits a little longer. */
const jitterMs = 500

const isTooOften = (failures: number, error: unknown): boolean => failures < waitsMax && tooOftenMs(apiErrorOf(error)) !== null
const retryDelay = (failures: number, error: unknown): number => (tooOftenMs(apiErrorOf(error)) ?? pauseMs * 2 ** failures) + Math.random() * jitterMs

/** The cache of everything that the console has read. It is emptied when the organisation of the session changes. */
export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: freshMs,
      retry: (failures, error) => isTooOften(failures, error) || (failures < retriesMax && mayPass(apiErrorOf(error))),
      retryDelay,
      // A gateway on this computer also answers without a network.
      networkMode: 'always',
    },
    // A request that came too often had no effect, so it can be sent again. Every other refusal waits for the person.
    mutations: { networkMode: 'always', retry: isTooOften, retryDelay },
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
