import type { Command } from 'commander'
import type { GatewayClient } from '../../agents/toolkit/gateway-client.ts'
import { addClientFlags, addExamples } from '../client-command.ts'
import { plain, printJson, printLine, rupees, tableLines } from '../command-output.ts'
import { count } from '../option-values.ts'
import type { PersonFlags } from '../person/person.ts'
import { styled } from '../terminal/style.ts'
import type { LoggedCall } from './logged-call.ts'

interface LogsFlags extends PersonFlags {
  readonly limit: number
  readonly follow?: boolean
  readonly failed?: boolean
  readonly agent?: number
  readonly model?: string
  readonly request?: string
}

const limitDefault = 20
const limitMax = 200

/** Adds the command `brigade logs`. */
export function addLogsCommand(program: Command): void {
  const command = addClientFlags(
    program.command('logs').description('the last calls of the organisation, oldest first: time, agent, model, outcome, cost. Brigade keeps no text of them'),
  )
    .option('-f, --follow', 'print new calls as they end, until Ctrl-C')
    .option('-n, --limit <n>', `number of calls, at most ${limitMax}`, count, limitDefault)
    .option('--failed', 'only calls that failed')
    .option('--agent <id>', 'only calls of the agent with this id', count)
    .option('--model <id>', 'only calls of this model')
    .option('--request <id>', 'only the calls of one request')
    .option('--email <email>', 'the person to act as, on the computer of the gateway')
  addExamples(command, [
    ['brigade logs', 'the last 20 calls'],
    ['brigade logs -f --failed', 'failures as they happen'],
    ['brigade logs --json -n 200', 'for programs, one call on each line'],
  ])
  command.action(logs)
}

async function logs(flags: LogsFlags): Promise<void> {
  const { asPerson } = await import('../person/person.ts')
  await asPerson(flags, true, async client => {
    const first = await callsOf(client, flags, Math.min(flags.limit, limitMax))
    const print = printer(flags, first)
    print(first)
    if (flags.follow !== true) return
    const { follow } = await import('./follow-calls.ts')
    await follow(first, () => callsOf(client, flags, limitMax), print)
  })
}

/** Returns the newest calls, oldest first. */
async function callsOf(client: GatewayClient, { failed, agent, model, request }: LogsFlags, limit: number): Promise<LoggedCall[]> {
  const query = { limit, agent_id: agent, model, request_id: request, ...(failed === true ? { status: 'failed' } : {}) }
  const { events } = await client.json<{ events: LoggedCall[] }>('GET', '/me/activity/events', { query })
  return events.toReversed()
}

/** Returns a function that prints calls: as JSON, one on each line, or as a table whose columns stay the same while it follows. */
function printer({ json, follow, failed }: LogsFlags, first: readonly LoggedCall[]): (calls: readonly LoggedCall[]) => void {
  if (json === true) return calls => calls.forEach(printJson)
  const nothing = failed === true ? 'No call has failed. Calls that Brigade refused, by a budget or a pause, are not listed.' : 'There is no call yet.'
  if (first.length === 0 && follow !== true) return () => printLine(nothing)
  let isFirst = true
  return calls => {
    const [head = '', ...lines] = linesOf(calls)
    if (isFirst) printLine(head)
    isFirst = false
    for (const [at, line] of lines.entries()) printLine(calls[at]?.outcome === 'ok' ? line : styled('red', line))
  }
}

/** The widths of columns are fixed, so that lines that come later fit. Longer texts push the rest of their line to the right. */
const [whoWidth, modelWidth, outcomeWidth] = [20, 28, 14] as const

function linesOf(calls: readonly LoggedCall[]): string[] {
  const costs = rupees(calls.map(({ cost_inr }) => cost_inr))
  return tableLines(
    [
      { head: 'TIME (UTC)         ' },
      { head: 'AGENT'.padEnd(whoWidth) },
      { head: 'MODEL'.padEnd(modelWidth) },
      { head: 'OUTCOME'.padEnd(outcomeWidth) },
      { head: '     MS', align: 'right' },
      { head: '   COST ₹', align: 'right' },
      { head: 'REQUEST' },
    ],
    calls.map((call, at) => [
      call.at.slice(0, 19).replace('T', ' '),
      call.agent_name ?? call.agent_label ?? `(key ${plain(call.key_name ?? '?')})`,
      call.model,
      call.outcome === 'ok' ? 'ok' : `${call.outcome} ${call.status}`,
      String(call.latency_ms),
      costs[at] ?? '',
      call.request_id,
    ]),
  )
}
