import type { GatewayClient } from '../../agents/toolkit/gateway-client.ts'
import { CommandError, exitCodes } from '../command-error.ts'

/** An agent in replies of the gateway. */
export interface AgentRow {
  readonly id: number
  readonly name: string
  readonly status: 'active' | 'paused' | 'revoked'
  readonly parent_id: number | null
  readonly monthly_budget_inr: number | null
  readonly spend_month_inr: number
  readonly held_inr: number
  readonly may_delegate: boolean
  readonly allowed_models: readonly string[] | null
  readonly allowed_providers: readonly string[] | null
  readonly allowed_tools: readonly string[] | null
  readonly max_cost_inr_per_call: number | null
  readonly max_output_tokens: number | null
  readonly max_concurrency: number | null
  /** Caps of each of its runs. Null: none. */
  readonly run: { readonly max_cost_inr: number | null; readonly max_calls: number | null; readonly loop: string } | null
}

const pageSize = 200

/** Which agents of the organisation are listed. */
export interface AgentFilter {
  /** A part of the name, or an id. */
  readonly q?: string
  readonly state?: AgentRow['status']
}

/** Yields every agent of the organisation that matches, active agents first. Pages are fetched as they are needed. */
export async function* everyAgent(client: GatewayClient, filter: AgentFilter = {}): AsyncGenerator<AgentRow> {
  let cursor: string | undefined
  do {
    const page: { agents: AgentRow[]; next_cursor: string | null } = await client.json('GET', '/v1/me/agents', {
      query: { ...filter, limit: pageSize, cursor },
    })
    yield* page.agents
    cursor = page.next_cursor ?? undefined
  } while (cursor !== undefined)
}

/** Returns the agent with that id, or the active agent with that name. A text of digits is an id. Throws CommandError (4). */
export async function agentNamed(client: GatewayClient, named: string): Promise<AgentRow> {
  const isId = /^\d+$/.test(named)
  // The gateway stores names in this form. An older name is normalised for the comparison.
  const wanted = named.normalize('NFC').trim()
  let isRevoked = false
  for await (const row of everyAgent(client)) {
    if (isId ? row.id === Number(named) : row.name.normalize('NFC') === wanted && row.status !== 'revoked') return row
    isRevoked ||= row.name.normalize('NFC') === wanted
  }
  throw new CommandError(
    isRevoked
      ? `the agent "${named}" was revoked already; give its id to name it all the same.`
      : `there is no agent "${named}". brigade agent list shows them; a name with spaces needs quotes.`,
    { exitCode: exitCodes.notFound, code: 'not_found' },
  )
}
