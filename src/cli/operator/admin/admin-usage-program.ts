import type { Command } from 'commander'
import { printJson, printLine, printTable } from '../../command-output.ts'

type RunAdmin = (command: { name: string; args: Readonly<Record<string, unknown>> }) => Promise<object>

interface Rebuilt {
  readonly days: readonly { readonly day: string; readonly events: number; readonly summed_before: number }[]
}

/** Adds the commands `brigade admin usage …`. `runAdmin` runs a command in the process that owns the database. */
export function addUsageCommands(admin: Command, runAdmin: RunAdmin): void {
  const usage = admin.command('usage').description('the sums that reports of usage read')
  usage
    .command('rebuild')
    .description('add up the sums by day again from the events, where they disagree; calls continue meanwhile')
    .option('--from <day>', 'first IST day, YYYY-MM-DD; without it the first whose events are kept')
    .option('--to <day>', 'last IST day')
    .option('--json', 'print JSON')
    .action(async ({ json, ...args }: { json?: boolean }) => {
      const done = (await runAdmin({ name: 'usage-rebuild', args })) as Rebuilt
      if (json === true) printJson(done)
      else printRebuilt(done)
    })
}

function printRebuilt({ days }: Rebuilt): void {
  if (days.length === 0) {
    printLine('the sums agree with the events; nothing was changed')
    return
  }
  printTable(
    [{ head: 'DAY' }, { head: 'EVENTS', align: 'right' }, { head: 'SUMMED BEFORE', align: 'right' }],
    days.map(({ day, events, summed_before: before }) => [day, String(events), String(before)]),
  )
}
