import type { Command } from 'commander'
import type { AdminCommand } from '../../operations/admin/admin-socket.ts'
import type { MasterKeyReport } from '../../operations/admin/master-key.ts'
import { printJson, printLine } from '../command-output.ts'

const help = `
Installations whose key is in MASTER_KEY, without downtime (docs/operate/keys-and-secrets.md):
  1. MASTER_KEY_OTHER=<new> on every process        2. swap: MASTER_KEY=<new>, MASTER_KEY_OTHER=<old>
  3. brigade master-key reseal                       4. take MASTER_KEY_OTHER away
Installations whose key is the file master.key:
  brigade master-key change       stop the gateway first; a new file, and everything is sealed again
  brigade master-key forget       removes the key before (master.key.old)`

/**
 * Adds the commands `brigade master-key …`. They show which values are sealed under each master key, and change the key. The code of the commands is
 * loaded when they run.
 */
export function addMasterKeyCommands(program: Command): void {
  const masterKey = program.command('master-key').description('show or change the key that seals what is stored').addHelpText('after', help)
  masterKey
    .command('status')
    .description('list the master keys in use, by id, with the number of values sealed under each')
    .option('--json', 'print JSON')
    .action(({ json }: { json?: boolean }) => print({ name: 'master-key-status', args: {} }, json === true))
  masterKey
    .command('reseal')
    .description('seal all values under MASTER_KEY_OTHER (or master.key.old) again with the present key; safe to repeat, also while gateways run')
    .option('--json', 'print JSON')
    .action(({ json }: { json?: boolean }) => print({ name: 'master-key-reseal', args: {} }, json === true))
  masterKey
    .command('change')
    .description('embedded database only: make a new master.key and seal everything again under it; continues where it was stopped')
    .option('--json', 'print JSON')
    .action(async ({ json }: { json?: boolean }) => {
      const { changeMasterKey } = await import('../../operations/admin/master-key.ts')
      show(await changeMasterKey(), json === true)
    })
  masterKey
    .command('forget')
    .description('remove master.key.old when no value is sealed under it any more; cookies that it signed are refused after the next start')
    .option('--json', 'print JSON')
    .action(async ({ json }: { json?: boolean }) => {
      const { forgetFormerKey } = await import('../../operations/admin/master-key.ts')
      show(await forgetFormerKey(), json === true)
    })
}

async function print(command: AdminCommand, asJson: boolean): Promise<void> {
  const { runAdmin } = await import('./admin/run-admin.ts')
  show((await runAdmin(command)) as MasterKeyReport, asJson)
}

function show(report: MasterKeyReport, asJson: boolean): void {
  if (asJson) printJson(report)
  else for (const line of linesOf(report)) printLine(line)
  if ((report.unopened ?? 0) > 0) process.exitCode = 1
}

function linesOf(report: MasterKeyReport): string[] {
  const lines = (report.resealed ?? []).filter(({ values }) => values > 0).map(({ where, values }) => `sealed again: ${values} of ${where}`)
  if ((report.unopened ?? 0) > 0)
    lines.push(`${report.unopened} values are sealed under a key that is not here and stay as they are; the list below says which key`)
  for (const { keyId, values, state, where } of report.inUse) lines.push(`key ${keyId} (${state}): ${values} values in ${where.join(', ')}`)
  if (report.next !== null) lines.push(report.next)
  return lines
}
