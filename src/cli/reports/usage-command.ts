import { type Command, Option } from 'commander'
import { addClientFlags, addExamples, type CalledGateway, withGateway } from '../client-command.ts'
import type { ClientFlags } from '../client-settings.ts'
import { printFields, printJson, printLine, printTable, rupees } from '../command-output.ts'
import { csvRecords } from './csv-records.ts'

interface Totals {
  readonly requests: number
  readonly prompt_tokens: number
  readonly completion_tokens: number
  readonly cost_inr: number
  readonly value_inr: number
}

interface UsageReply {
  readonly from: string
  readonly to: string
  readonly totals: Totals
  readonly by_model: readonly (Totals & { readonly model: string })[]
  readonly by_agent: readonly (Totals & { readonly id: number | null; readonly name: string | null; readonly label: string | null })[]
}

interface UsageFlags extends ClientFlags {
  readonly from?: string
  readonly to?: string
  readonly by?: 'agent' | 'model' | 'day'
  readonly csv?: boolean
}

type Line = Totals & { readonly what: string }

const path = '/v1/usage'

/** Adds the command `brigade usage`. */
export function addUsageCommand(program: Command): void {
  const command = addClientFlags(program.command('usage').description('what the organisation used: calls, tokens, rupees'))
    .option('--from <day>', 'first day, YYYY-MM-DD, Indian time (default: the first of the month)')
    .option('--to <day>', 'last day, included (default: today)')
    .addOption(new Option('--by <what>', 'a line for each').choices(['agent', 'model', 'day']))
    .addOption(new Option('--csv', 'print CSV, a line a day, model and provider').conflicts(['json', 'by']))
  addExamples(command, [
    ['brigade usage', 'this month so far'],
    ['brigade usage --by agent', 'who used it'],
    ['brigade usage --from 2026-01-01 --to 2026-01-31 --by day', 'one month, day by day'],
    ['brigade usage --csv > usage.csv', 'for a spreadsheet'],
  ])
  command.action((flags: UsageFlags) => withGateway(flags, gateway => report(gateway, flags)))
}

async function report({ client }: CalledGateway, flags: UsageFlags): Promise<void> {
  const query = { from: flags.from, to: flags.to }
  if (flags.csv === true || flags.by === 'day') {
    const text = await (await client.send('GET', path, { query: { ...query, format: 'csv' } })).text()
    if (flags.csv === true) process.stdout.write(text)
    else printDays(daysOf(text), flags)
    return
  }
  const reply = await client.json<UsageReply>('GET', path, { query })
  if (flags.json === true) return printJson(reply)
  printLine(`${reply.from} to ${reply.to}`)
  if (flags.by === 'model') return printLines('MODEL', modelsOf(reply))
  if (flags.by === 'agent') return printLines('AGENT', agentsOf(reply))
  printFields(fieldsOf(reply.totals))
  for (const [head, lines] of [['MODEL', modelsOf(reply)] as const, ['AGENT', agentsOf(reply)] as const]) {
    if (lines.length === 0) continue
    printLine('')
    printLines(head, lines)
  }
}

function fieldsOf(totals: Totals): Record<string, string> {
  const [cost, value] = rupees([totals.cost_inr, totals.value_inr])
  return {
    calls: String(totals.requests),
    tokens: `${totals.prompt_tokens} in, ${totals.completion_tokens} out`,
    cost: `₹${cost}`,
    // The value is the amount that budgets count. A call on a key of the organisation costs nothing here, but has a value.
    value: `₹${value}`,
  }
}

function modelsOf({ by_model }: UsageReply): Line[] {
  return by_model.map(row => ({ ...row, what: row.model }))
}

function agentsOf({ by_agent }: UsageReply): Line[] {
  return by_agent.map(row => ({
    ...row,
    what: row.id === null ? (row.label === null ? '(no agent)' : `${row.label} (label)`) : `${row.name ?? '?'} (id ${row.id})`,
  }))
}

function printLines(head: string, lines: readonly Line[]): void {
  const costs = rupees(lines.map(line => line.cost_inr))
  const values = rupees(lines.map(line => line.value_inr))
  const right = (text: string) => ({ head: text, align: 'right' }) as const
  printTable(
    [{ head }, right('CALLS'), right('TOKENS IN'), right('TOKENS OUT'), right('COST ₹'), right('VALUE ₹')],
    lines.map((line, at) => [line.what, String(line.requests), String(line.prompt_tokens), String(line.completion_tokens), costs[at] ?? '', values[at] ?? '']),
  )
}

/** Returns the days of the CSV report. The lines of one day are added up. */
function daysOf(text: string): Line[] {
  const days = new Map<string, Line>()
  for (const record of csvRecords(text)) {
    const day = record['day'] ?? ''
    const before = days.get(day)
    const sum = (name: keyof Totals): number => toMicros((before?.[name] ?? 0) + Number(record[name] ?? 0))
    days.set(day, {
      what: day,
      requests: sum('requests'),
      prompt_tokens: sum('prompt_tokens'),
      completion_tokens: sum('completion_tokens'),
      cost_inr: sum('cost_inr'),
      value_inr: sum('value_inr'),
    })
  }
  return [...days.values()].sort((a, b) => (a.what < b.what ? -1 : 1))
}

/** Rounds rupees to six decimals. Any further digits come from adding floating-point numbers. */
function toMicros(value: number): number {
  return Math.round(value * 1e6) / 1e6
}

function printDays(days: readonly Line[], { json }: UsageFlags): void {
  if (json === true) printJson({ by_day: days.map(({ what, ...totals }) => ({ day: what, ...totals })) })
  else printLines('DAY', days)
}
