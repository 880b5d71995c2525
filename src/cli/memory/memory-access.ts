import type { MemoryClient } from '../../agents/toolkit/memory-client/memory-client.ts'
import type { MemoryAuthor } from '../../agents/toolkit/memory-client/memory-client-shapes.ts'
import { withGateway } from '../client-command.ts'
import type { ClientFlags } from '../client-settings.ts'

/** Runs `act` with a client for the shared memory of the gateway that the flags name. Throws the errors of `withGateway`. */
export function withMemory<T>(flags: ClientFlags, act: (memory: MemoryClient) => Promise<T>): Promise<T> {
  return withGateway(flags, async ({ client }) => {
    const { memoryClient } = await import('../../agents/toolkit/memory-client/memory-client.ts')
    return act(memoryClient(client))
  })
}

/** Returns the author in the form that `memory ls --author` accepts. Returns `-` when the object was not written through the gateway. */
export function authorText(author: MemoryAuthor | null): string {
  if (author === null) return '-'
  return author.agent === undefined ? `user:${author.user}` : `agent:${author.agent}`
}
