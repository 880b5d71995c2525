import type { Command } from 'commander'
import type { AdminCommand } from '../../../operations/admin/admin-socket.ts'
import { printResult } from '../../command-output.ts'
import { number } from '../../option-values.ts'
import { addBillingCommands } from './admin-billing-program.ts'
import { addComplianceCommands } from './admin-compliance-program.ts'
import { addDoubtCommands } from './admin-doubt-program.ts'
import { addUsageCommands } from './admin-usage-program.ts'
import { addWebhookCommands } from './admin-webhook-program.ts'
import type { AuditPage } from './audit-lines.ts'

/** Loads the code of an operator command only when it runs, because most command lines are client commands. */
async function runAdmin(command: AdminCommand): Promise<object> {
  return (await import('./run-admin.ts')).runAdmin(command)
}

async function printAudit(page: AuditPage, asJson: boolean): Promise<void> {
  const { auditLines } = await import('./audit-lines.ts')
  process.stdout.write(asJson ? `${JSON.stringify(page)}\n` : auditLines(page))
}

/** Adds the commands `brigade admin …` of the operator. */
export function addAdminCommands(program: Command): void {
  const admin = program.command('admin').description('commands of the operator')
  addAccountCommands(admin)
  addBillingCommands(admin, runAdmin)
  addWebhookCommands(admin, runAdmin)
  addComplianceCommands(admin, runAdmin)
  addUsageCommands(admin, runAdmin)
  addDoubtCommands(admin, runAdmin)
  addUpkeepCommands(admin)
}

/** Adds commands for organisations, keys, budgets and sign-in. */
function addAccountCommands(admin: Command): void {
  admin
    .command('create')
    .description('make an organisation with its owner and a first key')
    .requiredOption('--email <email>', 'of the owner')
    .requiredOption('--org <name>', 'name of the organisation')
    .option('--rpm <n>', 'requests a minute of the key', number)
    .option('--daily <n>', 'requests a day of the key', number)
    .option('--org-budget-inr <inr>', 'monthly budget of the organisation', number)
    .option('--key-budget-inr <inr>', 'monthly budget of the key', number)
    .option('--json', 'print JSON')
    .action(async ({ json, ...args }: { json?: boolean }) => printResult(await runAdmin({ name: 'create', args }), json === true))

  admin
    .command('key')
    .description('make another key')
    .requiredOption('--org <id>', 'id of the organisation', number)
    .option('--email <email>', 'of the member that the key belongs to; without it no user backs the key')
    .option('--name <name>', 'name of the key', 'key')
    .option('--scope <scope>', 'full or inference', 'full')
    .option('--rpm <n>', 'requests a minute', number)
    .option('--daily <n>', 'requests a day', number)
    .option('--key-budget-inr <inr>', 'monthly budget', number)
    .option('--workspace <id>', 'workspace that its usage counts in', number)
    .option('--expires-days <n>', 'days of life, 1 to 365', number)
    .option('--max-concurrency <n>', 'concurrent calls', number)
    .option('--max-output-tokens <n>', 'output tokens of one call', number)
    .option('--max-cost-inr <inr>', 'most that one call may cost', number)
    .option('--json', 'print JSON')
    .action(async ({ json, ...args }: { json?: boolean }) => printResult(await runAdmin({ name: 'key', args }), json === true))

  admin
    .command('revoke-key')
    .description('end a key immediately, with its running calls')
    .requiredOption('--org <id>', 'id of the organisation', number)
    .requiredOption('--key <id>', 'id of the key', number)
    .option('--json', 'print JSON')
    .action(async ({ json, ...args }: { json?: boolean }) => printResult(await runAdmin({ name: 'revoke-key', args }), json === true))

  admin
    .command('sign-in')
    .description('make a link that signs a person in once (SIGN_IN_LINK_TTL_S)')
    .requiredOption('--email <email>', 'of the person')
    .option('--json', 'print JSON')
    .action(async ({ json, ...args }: { json?: boolean }) => printResult(await runAdmin({ name: 'sign-in', args }), json === true))

  admin
    .command('budget')
    .description('set or clear the monthly budget of an organisation, a key or an agent')
    .requiredOption('--org <id>', 'id of the organisation', number)
    .requiredOption('--scope <scope>', 'org, key or agent')
    .option('--id <id>', 'id of the key or agent', number)
    .option('--inr <inr>', 'rupees a month, more than 0', number)
    .option('--clear', 'no limit any more')
    .option('--strict', 'hold the worst case of every call')
    .option('--json', 'print JSON')
    .action(async ({ json, ...args }: { json?: boolean }) => printResult(await runAdmin({ name: 'budget', args }), json === true))

  admin
    .command('limits')
    .description('show or set the limits of an organisation as a whole; 0 is no limit, and a limit that was never set follows the ORG_ settings')
    .requiredOption('--org <id>', 'id of the organisation', number)
    .option('--rpm <n>', 'requests a minute over all its keys', number)
    .option('--running <n>', 'calls that run concurrently', number)
    .option('--keys <n>', 'keys that can be used', number)
    .option('--agents <n>', 'active agents', number)
    .option('--streams <n>', 'open streams of changes', number)
    .option('--reset', 'first reset all of them to the settings')
    .option('--json', 'print JSON')
    .action(async ({ json, ...args }: { json?: boolean }) => printResult(await runAdmin({ name: 'limits', args }), json === true))
}

/** Adds the commands for the maintenance of an installation and for the audit trail. */
function addUpkeepCommands(admin: Command): void {
  admin
    .command('maintenance')
    .description(
      "withhold a route of the platform for a while, or serve it again; callers' own keys are served all the same; without a route: list what is withheld",
    )
    .argument('[provider/model]', 'the route')
    .option('--for <time>', 'how long: 90s, 10m, 2h, 1d')
    .option('--clear', 'serve it again')
    .option('--json', 'print JSON')
    .action(async (route: string | undefined, { json, ...args }: { json?: boolean; for?: string; clear?: boolean }) => {
      const made = await runAdmin({ name: 'maintenance', args: { ...args, ...(route === undefined ? {} : { route }) } })
      const { withheld } = made as { withheld?: readonly object[] }
      if (withheld === undefined || json === true) return printResult(made, json === true)
      if (withheld.length === 0) process.stdout.write('nothing is withheld\n')
      for (const entry of withheld) printResult(entry, false)
    })

  admin
    .command('rotate-signing-key')
    .description('let the next key sign agent tokens; existing tokens stay valid until they expire')
    .option('--json', 'print JSON')
    .action(async ({ json }: { json?: boolean }) => printResult(await runAdmin({ name: 'rotate-signing-key', args: {} }), json === true))

  admin
    .command('audit')
    .description('list who did what in an organisation, newest first; without --org what was done to the installation itself')
    .option('--org <id>', 'id of the organisation', number)
    .option('--before <id>', 'entries older than the one of this id', number)
    .option('--limit <n>', 'how many entries, at most 1000 (default 100)', number)
    .option('--json', 'print JSON')
    .action(async ({ json, ...args }: { json?: boolean }) => printAudit((await runAdmin({ name: 'audit', args })) as AuditPage, json === true))

  admin
    .command('content')
    .description('show what was said in a call, for organisations that keep content; leaves a line in the audit trail')
    .requiredOption('--org <id>', 'id of the organisation', number)
    .requiredOption('--request <id>', 'x-request-id of the call')
    .option('--json', 'print JSON')
    .action(async ({ json, ...args }: { json?: boolean }) => printResult(await runAdmin({ name: 'content', args }), json === true))
}
