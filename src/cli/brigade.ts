#!/usr/bin/env node
import { Command } from 'commander'
import { createApp } from '../app.ts'
import { openFoundation } from '../boot.ts'
import { systemClock } from '../platform/clock.ts'
import { ConfigError, loadConfig, userConfigFolder } from '../platform/config.ts'
import { systemIds } from '../platform/ids.ts'
import { makeLog } from '../platform/log.ts'
import { publicBaseUrl } from '../serve.ts'
import { version } from '../version.ts'
import { adminHandler } from './admin-commands.ts'
import { type AdminCommand, askAdmin } from './admin-socket.ts'
import { type AuditPage, auditLines } from './audit-lines.ts'
import { runDemo } from './demo.ts'
import { type Finding, printReport } from './doctor.ts'
import { login, openInBrowser } from './login.ts'

/** Runs a command in the process that owns the embedded database, or in this one when none runs. */
async function runAdmin(command: AdminCommand): Promise<unknown> {
  const config = loadConfig()
  if (config.DATABASE_URL === null) {
    const asked = await askAdmin(config.DATA_DIR, command)
    if (asked !== null) return asked.result
  }
  const log = makeLog('error')
  const foundation = await openFoundation(config, systemClock, log)
  const app = await createApp({ config, clock: systemClock, ids: systemIds, log, ...foundation })
  app.setBaseUrl(publicBaseUrl(config))
  try {
    return await adminHandler(app)(command)
  } finally {
    await app.stop()
  }
}

function print(value: unknown, asJson: boolean): void {
  if (asJson) process.stdout.write(`${JSON.stringify(value)}\n`)
  else for (const [name, field] of Object.entries(value as object)) process.stdout.write(`${name.padEnd(10)} ${String(field)}\n`)
}

function printAudit(page: AuditPage, asJson: boolean): void {
  process.stdout.write(asJson ? `${JSON.stringify(page)}\n` : auditLines(page))
}

const number = (text: string): number => {
  const value = Number(text)
  if (!Number.isFinite(value)) throw new ConfigError(`"${text}" is not a number.`)
  return value
}

const program = new Command('brigade').description('Brigade, the model gateway for people who run agents').version(version)

program
  .command('serve')
  .description('start the gateway (settings: docs/config.md)')
  .action(async () => {
    await import('../main.ts')
  })
program
  .command('migrate')
  .description('bring the database schema up to this version')
  .action(async () => {
    const { db } = await openFoundation(loadConfig(), systemClock, makeLog('info'))
    await db.close()
  })
program
  .command('demo')
  .description('play the main job on a gateway of its own')
  .action(async () => {
    process.exitCode = (await runDemo(line => process.stdout.write(`${line}\n`))) === 0 ? 0 : 1
  })
program
  .command('doctor')
  .description('check configuration, database, budgets, providers and stores')
  .option('--release <process>', 'give up what a dead process holds of budgets and limits, because its disk will not come back', number)
  .option('--json', 'print JSON')
  .action(async (options: { json?: boolean; release?: number }) => {
    if (options.release !== undefined) return print(await runAdmin({ name: 'release', args: { process: options.release } }), options.json === true)
    const findings = (await runAdmin({ name: 'doctor', args: {} })) as Finding[]
    process.exitCode = printReport(findings, options.json === true, line => process.stdout.write(`${line}\n`))
  })
program
  .command('login')
  .description('sign in to a gateway in the browser and keep an API key for this user')
  .option('--base-url <url>', 'address of the gateway (default: BASE_URL, or HOST and PORT)')
  .option('--no-browser', 'only print the address')
  .action(async (options: { baseUrl?: string; browser: boolean }) =>
    login({
      baseUrl: options.baseUrl ?? publicBaseUrl(loadConfig()),
      folder: userConfigFolder(),
      clock: systemClock,
      ids: systemIds,
      openBrowser: options.browser && process.stdout.isTTY ? openInBrowser : null,
      print: line => process.stdout.write(`${line}\n`),
    }),
  )

const admin = program.command('admin').description('commands of the operator')
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
  .action(async ({ json, ...args }: { json?: boolean }) => print(await runAdmin({ name: 'create', args }), json === true))
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
  .option('--max-concurrency <n>', 'calls at once', number)
  .option('--max-output-tokens <n>', 'output tokens of one call', number)
  .option('--max-cost-inr <inr>', 'most that one call may cost', number)
  .option('--json', 'print JSON')
  .action(async ({ json, ...args }: { json?: boolean }) => print(await runAdmin({ name: 'key', args }), json === true))

admin
  .command('revoke-key')
  .description('end a key at once, with the calls that run on it')
  .requiredOption('--org <id>', 'id of the organisation', number)
  .requiredOption('--key <id>', 'id of the key', number)
  .option('--json', 'print JSON')
  .action(async ({ json, ...args }: { json?: boolean }) => print(await runAdmin({ name: 'revoke-key', args }), json === true))
admin
  .command('sign-in')
  .description('make a link that signs a person in once (SIGN_IN_LINK_TTL_S)')
  .requiredOption('--email <email>', 'of the person')
  .option('--json', 'print JSON')
  .action(async ({ json, ...args }: { json?: boolean }) => print(await runAdmin({ name: 'sign-in', args }), json === true))
admin
  .command('budget')
  .description('set or clear the monthly budget of an organisation, a key or an agent')
  .requiredOption('--org <id>', 'id of the organisation', number)
  .requiredOption('--scope <scope>', 'org, key or agent')
  .option('--id <id>', 'id of the key or agent', number)
  .requiredOption('--inr <inr>', 'rupees a month; 0 clears it', number)
  .option('--strict', 'hold the worst case of every call')
  .option('--json', 'print JSON')
  .action(async ({ json, ...args }: { json?: boolean }) => print(await runAdmin({ name: 'budget', args }), json === true))
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
    if (withheld === undefined || json === true) return print(made, json === true)
    if (withheld.length === 0) process.stdout.write('nothing is withheld\n')
    for (const entry of withheld) print(entry, false)
  })

admin
  .command('rotate-signing-key')
  .description('let the next key sign agent tokens; those that are out go on verifying until they expire')
  .option('--json', 'print JSON')
  .action(async ({ json }: { json?: boolean }) => print(await runAdmin({ name: 'rotate-signing-key', args: {} }), json === true))
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
  .action(async ({ json, ...args }: { json?: boolean }) => print(await runAdmin({ name: 'content', args }), json === true))

program.parseAsync().catch(error => {
  process.stderr.write(`brigade: ${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
})
