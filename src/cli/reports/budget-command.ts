import type { Command } from 'commander'
import type { AgentBudget } from '../../agents/toolkit/connect-agent.ts'
import { addClientFlags, addExamples, withGateway } from '../client-command.ts'
import type { ClientFlags } from '../client-settings.ts'
import { printJson, printLine, printTable, rupees } from '../command-output.ts'
import { addBudgetRequestCommands } from './budget-requests.ts'

/** Adds the command `brigade budget`, and those that ask for more. */
export function addBudgetCommand(program: Command): void {
  const command = addClientFlags(program.command('budget').description('the budgets that bind this credential: cap, spent, held by running calls, left'))
  addExamples(command, [
    ['brigade budget', 'of your key'],
    ['brigade agent token reviewer | brigade budget --key-file -', 'of an agent, as it sees it'],
  ])
  addBudgetRequestCommands(command)
  command.action((flags: ClientFlags) =>
    withGateway(flags, async ({ client }) => {
      const reply = await client.json<{ budgets: AgentBudget[] }>('GET', '/v1/me/budgets')
      if (flags.json === true) printJson(reply)
      else if (reply.budgets.length === 0) printLine('No budget binds this credential.')
      else printBudgets(reply.budgets)
    }),
  )
}

function printBudgets(budgets: readonly AgentBudget[]): void {
  const column = (amountOf: (row: AgentBudget) => number): string[] => rupees(budgets.map(amountOf))
  const caps = column(row => row.cap_inr)
  const spent = column(row => row.spent_inr)
  const held = column(row => row.held_inr + row.in_doubt_inr)
  const left = column(row => row.remaining_inr)
  printTable(
    [
      { head: 'SCOPE' },
      { head: 'ID', align: 'right' },
      { head: 'PERIOD' },
      { head: 'CAP ₹', align: 'right' },
      { head: 'SPENT ₹', align: 'right' },
      { head: 'HELD ₹', align: 'right' },
      { head: 'LEFT ₹', align: 'right' },
      { head: 'STATE' },
      { head: 'RESETS' },
    ],
    budgets.map((row, at) => [
      row.scope,
      String(row.id),
      row.period ?? 'month',
      caps[at] ?? '',
      spent[at] ?? '',
      held[at] ?? '',
      left[at] ?? '',
      `${row.state}${row.strict ? ', strict' : ''}${row.increase_inr === undefined ? '' : `, ₹${row.increase_inr} more until ${row.increase_until}`}`,
      row.resets_at ?? 'never',
    ]),
  )
}
