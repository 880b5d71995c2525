/** What `brigade connect` asks the gateway before it writes anything: whether it answers, and whether the agent exists. */
import type { GatewayClient } from '../../agents/toolkit/gateway-client.ts'
import { type AgentRow, everyAgent } from '../agent/agent-lookup.ts'
import { CommandError, exitCodes } from '../command-error.ts'
import { gatewayFetch } from '../gateway-fetch.ts'

/** Maximum wait for the first answer of the gateway. */
const patienceMs = 10_000

/** Throws CommandError unless a gateway answers at the address. */
export async function expectGateway(baseUrl: string): Promise<void> {
  const reply = await gatewayFetch(baseUrl, patienceMs)(`${baseUrl}/livez`)
  await reply.body?.cancel()
}

/** The agent as which a client will call. */
export interface ReadyAgent {
  readonly name: string
  readonly id: number
  /** True: this command has made it. */
  readonly isNew: boolean
  readonly isPaused: boolean
}

/**
 * Returns the agent with this name or id, or null when no agent has the name. Throws CommandError (6) for an agent that was ended, because a token of it can
 * never be minted again, and CommandError (4) for an id that no agent has.
 */
export async function findAgent(client: GatewayClient, named: string): Promise<ReadyAgent | null> {
  const found = await lookedUp(client, named)
  if (found !== null && found.status !== 'revoked') return { name: found.name, id: found.id, isNew: false, isPaused: found.status === 'paused' }
  if (found !== null) {
    throw new CommandError(
      `the agent "${found.name}" (id ${found.id}) was ended permanently, so no client can run as it. Make another agent of that name with "brigade agent create ${found.name}", or give another name.`,
      { exitCode: exitCodes.conflict, code: 'agent_revoked' },
    )
  }
  if (isId(named))
    throw new CommandError(`there is no agent with the id ${named}. brigade agent list shows them.`, { exitCode: exitCodes.notFound, code: 'not_found' })
  return null
}

/** Makes the agent of that name. */
export async function makeAgent(client: GatewayClient, named: string): Promise<ReadyAgent> {
  const { id, name } = await client.json<AgentRow>('POST', '/v1/me/agents', { json: { name: named } })
  return { name, id, isNew: true, isPaused: false }
}

/** Returns the active agent of that name, or else the newest one that was ended. Null when there is none. */
async function lookedUp(client: GatewayClient, named: string): Promise<AgentRow | null> {
  const wanted = named.normalize('NFC').trim()
  let ended: AgentRow | null = null
  for await (const row of everyAgent(client, { q: wanted })) {
    const isIt = isId(named) ? row.id === Number(named) : row.name.normalize('NFC') === wanted
    if (isIt && row.status !== 'revoked') return row
    if (isIt) ended ??= row
  }
  return ended
}

function isId(named: string): boolean {
  return /^\d+$/.test(named)
}
