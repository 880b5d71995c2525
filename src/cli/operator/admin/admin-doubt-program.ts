import type { Command } from 'commander'
import { printJson, printLine, printResult, printTable } from '../../command-output.ts'
import { count } from '../../option-values.ts'

type RunAdmin = (command: { name: string; args: Readonly<Record<string, unknown>> }) => Promise<object>

interface ShownRecord {
  readonly id: number
  readonly at: string
  readonly org_id: number | null
  readonly process: number
  readonly kind: string
  readonly value_inr: number
  readonly reason: string
}

interface ShownDoubts {
  readonly processes: readonly {
    readonly process: number
    readonly silent_s: number
    readonly counters: number
    readonly most_inr: number
    readonly journal: string
  }[]
  readonly calls: readonly {
    readonly org_id: number
    readonly call: string
    readonly caller: string
    readonly state: string
    readonly process: number
    readonly since: string
    readonly request_id: string | null
  }[]
}

/** Adds the commands `brigade admin parked …` and `brigade admin in-doubt …`. `runAdmin` runs a command in the process that owns the database. */
export function addDoubtCommands(admin: Command, runAdmin: RunAdmin): void {
  addParkedCommands(admin, runAdmin)
  addInDoubtCommands(admin, runAdmin)
}

function addParkedCommands(admin: Command, runAdmin: RunAdmin): void {
  const parked = admin.command('parked').description('usage records that the database refused')
  parked
    .command('list')
    .description('the oldest 100 of them, with the reason')
    .option('--above <id>', 'records above this id', count)
    .option('--json', 'print JSON')
    .action(async ({ json, ...args }: { json?: boolean }) => {
      const shown = (await runAdmin({ name: 'parked-list', args })) as { records: readonly ShownRecord[] }
      if (json === true) printJson(shown)
      else printRecords(shown.records)
    })
  for (const [word, description] of [
    ['apply', 'charge a record now, when the cause of the refusal has been removed; it is charged once at most'],
    ['discard', 'delete a record without charging it'],
  ] as const)
    parked
      .command(word)
      .description(description)
      .argument('<id>', 'id of the record', count)
      .option('--json', 'print JSON')
      .action(async (id: number, { json }: { json?: boolean }) => printResult(await runAdmin({ name: `parked-${word}`, args: { id } }), json === true))
}

function addInDoubtCommands(admin: Command, runAdmin: RunAdmin): void {
  const inDoubt = admin.command('in-doubt').description('processes that do not answer, and calls whose result is not known')
  inDoubt
    .command('list')
    .description('what dead processes hold, and the oldest 100 calls')
    .option('--json', 'print JSON')
    .action(async ({ json }: { json?: boolean }) => {
      const shown = (await runAdmin({ name: 'in-doubt-list', args: {} })) as ShownDoubts
      if (json === true) printJson(shown)
      else printDoubts(shown)
    })
  inDoubt
    .command('apply')
    .description('say that a call was made: its Idempotency-Key stays taken until it runs out')
    .requiredOption('--org <id>', 'id of the organisation', count)
    .requiredOption('--call <id>', 'the call, as the list names it')
    .option('--json', 'print JSON')
    .action(async ({ json, ...args }: { json?: boolean }) => printResult(await runAdmin({ name: 'in-doubt-apply', args }), json === true))
  inDoubt
    .command('discard')
    .description('free the Idempotency-Key of a call, or give up all that a dead process holds')
    .option('--org <id>', 'id of the organisation', count)
    .option('--call <id>', 'the call, as the list names it')
    .option('--process <id>', 'a process whose disk will not come back', count)
    .option('--json', 'print JSON')
    .action(async ({ json, ...args }: { json?: boolean }) => printResult(await runAdmin({ name: 'in-doubt-discard', args }), json === true))
}

function printRecords(records: readonly ShownRecord[]): void {
  if (records.length === 0) {
    printLine('no record is parked')
    return
  }
  printTable(
    [
      { head: 'ID', align: 'right' },
      { head: 'AT' },
      { head: 'ORG', align: 'right' },
      { head: 'PROCESS', align: 'right' },
      { head: 'KIND' },
      { head: 'INR', align: 'right' },
      { head: 'REASON' },
    ],
    records.map(record => [
      String(record.id),
      record.at,
      record.org_id === null ? '' : String(record.org_id),
      String(record.process),
      record.kind,
      String(record.value_inr),
      record.reason,
    ]),
  )
}

function printDoubts({ processes, calls }: ShownDoubts): void {
  if (processes.length === 0) printLine('no process is in doubt')
  else
    printTable(
      [
        { head: 'PROCESS', align: 'right' },
        { head: 'SILENT S', align: 'right' },
        { head: 'COUNTERS', align: 'right' },
        { head: 'MOST INR', align: 'right' },
        { head: 'JOURNAL' },
      ],
      processes.map(({ process, silent_s: silent, counters, most_inr: most, journal }) => [
        String(process),
        String(silent),
        String(counters),
        String(most),
        journal,
      ]),
    )
  if (calls.length === 0) {
    printLine('no call is in doubt')
    return
  }
  printTable(
    [
      { head: 'ORG', align: 'right' },
      { head: 'CALL' },
      { head: 'CALLER' },
      { head: 'STATE' },
      { head: 'PROCESS', align: 'right' },
      { head: 'SINCE' },
      { head: 'REQUEST' },
    ],
    calls.map(call => [String(call.org_id), call.call, call.caller, call.state, String(call.process), call.since, call.request_id ?? '']),
  )
}
