import type { Command } from 'commander'
import { addClientFlags, addExamples, withGateway } from '../client-command.ts'
import type { ClientFlags } from '../client-settings.ts'
import { printJson, printLine, printResult, printTable } from '../command-output.ts'
import { amount, count } from '../option-values.ts'

interface BudgetRequest {
  readonly id: number
  readonly scope: string
  readonly target_id: string
  readonly target_name: string | null
  readonly period: string | null
  readonly run_id: string | null
  readonly amount_inr: number | null
  readonly calls: number | null
  readonly state: string
  readonly asked_at: string
  readonly until: string | null
}

interface AskFlags extends ClientFlags {
  readonly run?: string
  readonly scope?: string
  readonly id?: string
  readonly period?: string
  readonly inr?: number
  readonly calls?: number
  readonly agentId?: number
  readonly keyId?: number
  readonly reason: string
}

const path = '/v1/me/budget-requests'

/** Adds the commands `brigade budget ask` and `brigade budget requests`. */
export function addBudgetRequestCommands(budget: Command): void {
  const ask = addClientFlags(budget.command('ask').description('ask a person for more budget, or for a higher cap of a run'))
    .option('--run <id>', 'the run that a cap holds')
    .option('--agent-id <id>', 'with --run: of the family of this agent', count)
    .option('--key-id <id>', 'with --run: of this key', count)
    .option('--scope <scope>', 'the scope of the budget: agent, key, workspace, member or org')
    .option('--id <id>', 'the id of the agent, key, workspace or member (default: yours)')
    .option('--period <period>', 'month, week, day or ever (default: the one that is spent)')
    .option('--inr <rupees>', 'rupees more', amount)
    .option('--calls <count>', 'calls more, for a run with a cap on calls', count)
    .requiredOption('--reason <text>', 'why, for the person who decides')
  addExamples(ask, [
    ['brigade budget ask --run pr-1234 --inr 20 --reason "two more files"', 'for a run of this credential'],
    ['brigade budget ask --scope key --inr 100 --reason "the release"', 'for the budget of your key'],
  ])
  ask.action((_flags: AskFlags, command: Command) => {
    const flags = command.optsWithGlobals<AskFlags>()
    return withGateway(flags, async ({ client }) => {
      const reply = await client.json<{ request: BudgetRequest }>('POST', path, { json: bodyOf(flags) })
      printResult(reply.request, flags.json === true)
    })
  })
  const requests = addClientFlags(budget.command('requests').description('your requests for more budget, and their answers'))
  addExamples(requests, [['brigade budget requests', 'the latest 50']])
  requests.action((_flags: ClientFlags, command: Command) => {
    const flags = command.optsWithGlobals<ClientFlags>()
    return withGateway(flags, async ({ client }) => {
      const reply = await client.json<{ requests: BudgetRequest[] }>('GET', path)
      if (flags.json === true) printJson(reply)
      else if (reply.requests.length === 0) printLine('No requests. `brigade budget ask` makes one.')
      else printRequests(reply.requests)
    })
  })
}

function bodyOf({ run, scope, id, period, inr, calls, agentId, keyId, reason }: AskFlags) {
  return {
    scope: run === undefined ? (scope ?? 'key') : 'run',
    reason,
    ...(run === undefined ? {} : { run_id: run }),
    ...(agentId === undefined ? {} : { agent_id: agentId }),
    ...(keyId === undefined ? {} : { key_id: keyId }),
    ...(id === undefined ? {} : { target_id: id }),
    ...(period === undefined ? {} : { period }),
    ...(inr === undefined ? {} : { amount_inr: inr }),
    ...(calls === undefined ? {} : { calls }),
  }
}

function printRequests(requests: readonly BudgetRequest[]): void {
  printTable(
    [{ head: 'ID', align: 'right' }, { head: 'FOR' }, { head: 'ASKS' }, { head: 'STATE' }, { head: 'ASKED' }, { head: 'UNTIL' }],
    requests.map(request => [
      String(request.id),
      request.run_id === null ? `${request.period ?? ''} budget of ${request.scope} ${request.target_name ?? request.target_id}` : `run ${request.run_id}`,
      request.amount_inr === null ? `${request.calls} calls` : `₹${request.amount_inr}`,
      request.state,
      request.asked_at,
      request.until ?? '',
    ]),
  )
}
