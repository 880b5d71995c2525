import type { Command } from 'commander'
import type { GatewayClient } from '../../agents/toolkit/gateway-client.ts'
import type { AgentRow } from '../agent/agent-lookup.ts'
import { addClientFlags, addExamples, withGateway } from '../client-command.ts'
import type { ClientFlags } from '../client-settings.ts'
import { printJson, printLine, rupees, tableLines } from '../command-output.ts'
import { count } from '../option-values.ts'
import { isScreen, redraw } from '../terminal/live-screen.ts'

interface TopFlags extends ClientFlags {
  readonly limit: number
  readonly once?: boolean
}

/** An agent with the fields that the table shows. */
type TopAgent = AgentRow & { readonly last_call_at: string | null }

const limitDefault = 20
const limitMax = 200
const everyMs = 2_000

/** Adds the command `brigade top`. */
export function addTopCommand(program: Command): void {
  const command = addClientFlags(program.command('top').description('the active agents with the most spend of this month; drawn again every 2 s on a terminal'))
    .option('-n, --limit <n>', `number of agents, at most ${limitMax}`, count, limitDefault)
    .option('--once', 'print one table and end')
  addExamples(command, [
    ['brigade top', 'until Ctrl-C'],
    ['brigade top --once -n 5', 'five agents, one table'],
  ])
  command.action((flags: TopFlags) =>
    withGateway(flags, async ({ client }) => {
      if (flags.json === true) printJson({ agents: await topAgents(client, flags.limit) })
      else if (flags.once === true || !isScreen()) for (const line of await tableOf(client, flags.limit)) printLine(line)
      else await redraw(() => tableOf(client, flags.limit), everyMs)
    }),
  )
}

async function topAgents(client: GatewayClient, limit: number): Promise<TopAgent[]> {
  const { agents } = await client.json<{ agents: TopAgent[] }>('GET', '/v1/me/agents', {
    query: { sort: 'spend', state: 'active', limit: Math.min(limit, limitMax) },
  })
  return agents
}

async function tableOf(client: GatewayClient, limit: number): Promise<string[]> {
  const agents = await topAgents(client, limit)
  if (agents.length === 0) return ['No agent is active. Make one: brigade agent create <name>']
  const spent = rupees(agents.map(row => row.spend_month_inr))
  const held = rupees(agents.map(row => row.held_inr))
  const right = (head: string) => ({ head, align: 'right' }) as const
  return tableLines(
    [right('ID'), { head: 'AGENT' }, right('SPENT ₹'), right('BUDGET ₹'), right('USED'), right('HELD ₹'), { head: 'LAST CALL (UTC)' }],
    agents.map((row, at) => [
      String(row.id),
      row.name,
      spent[at] ?? '',
      row.monthly_budget_inr === null ? '-' : (rupees([row.monthly_budget_inr])[0] ?? ''),
      usedOf(row),
      row.held_inr > 0 ? (held[at] ?? '') : '-',
      row.last_call_at === null ? '-' : row.last_call_at.slice(0, 19).replace('T', ' '),
    ]),
  )
}

function usedOf({ monthly_budget_inr: cap, spend_month_inr: spent }: TopAgent): string {
  return cap === null || cap === 0 ? '-' : `${Math.floor((spent / cap) * 100)} %`
}
