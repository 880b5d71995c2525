import type { Command } from 'commander'
import type { Finding } from '../../operations/doctor/finding.ts'
import { terminalOf } from '../../platform/observe/terminal/terminal.ts'
import { printResult } from '../command-output.ts'
import { amount, number } from '../option-values.ts'
import { commandProgress, noteStep, withProgress } from './command-progress.ts'

/** Adds `brigade serve`, `migrate`, `demo` and `doctor`, which run on the computer of the gateway. Their code is loaded when they run. */
export function addServerCommands(program: Command): void {
  program
    .command('serve')
    .description('start the gateway (settings: docs/reference/config.md)')
    .action(async () => {
      await import('../../main.ts')
    })
  program.command('migrate').description('bring the database schema up to this version').action(migrate)
  program
    .command('demo')
    .description('run the main job on its own gateway, or serve a gateway with made-up data to look at')
    .option('--serve', 'serve 35 days of made-up data until you press Ctrl-C')
    .option('--seed <n>', 'the data depends only on this number', number, defaultSeed)
    .option('--port <n>', 'the port to serve on; 0 is a free one', number, 0)
    .action(demo)
  program
    .command('doctor')
    .description('check configuration, database, budgets, providers and stores')
    .option('--release <process>', 'give up what a dead process holds of budgets and limits, because its disk is lost', number)
    .option('--probe', 'try each configured route with one token, one stream and one tool call, which the providers charge for')
    .option('--only <id>', 'with --probe: only the routes of this provider or this model')
    .option('--max-inr <n>', 'with --probe: the most that all calls together may cost', amount, 5)
    .option('--max-seconds <n>', 'with --probe: the longest time of all calls together, at most 600', number, 120)
    .option('--json', 'print JSON')
    .action(doctor)
}

const defaultSeed = 7

async function demo(options: { serve?: boolean; seed: number; port: number }): Promise<void> {
  const print = (line: string): void => void process.stdout.write(`${line}\n`)
  const progress = commandProgress()
  if (options.serve !== true) {
    const failed = await withProgress(progress, 'Loading Brigade', async () => (await import('./demo/main-job.ts')).runDemo(print, progress))
    process.exitCode = failed === 0 ? 0 : 1
    return
  }
  const served = await withProgress(progress, 'Loading Brigade', async () =>
    (await import('./demo/serve-demo.ts')).serveDemo(options, line => noteStep(progress, line)),
  )
  print(`A demonstration with ${served.calls} calls and ${served.objects} notes listens on ${served.baseUrl}
Sign in as the owner   ${served.ownerLink}
Sign in as a member    ${served.memberLink}
Each link works once. Nothing is kept: press Ctrl-C to stop it and delete its data.`)
  const stop = (): void => void served.stop().finally(() => process.exit(0))
  process.once('SIGINT', stop)
  process.once('SIGTERM', stop)
}

async function migrate(): Promise<void> {
  const [{ openFoundation }, { systemClock }, { loadConfig }, { makeLog }] = await Promise.all([
    import('../../composition/foundation.ts'),
    import('../../platform/clock.ts'),
    import('../../platform/config.ts'),
    import('../../platform/observe/log.ts'),
  ])
  const progress = commandProgress()
  const { db } = await withProgress(progress, 'Loading the settings', () => openFoundation(loadConfig(), systemClock, makeLog('info'), { progress }))
  await db.close()
  if (progress.isShown) process.stdout.write('The database has the schema of this version.\n')
}

interface DoctorFlags {
  readonly json?: boolean
  readonly release?: number
  readonly probe?: boolean
  readonly only?: string
  readonly maxInr: number
  readonly maxSeconds: number
}

async function doctor(options: DoctorFlags): Promise<void> {
  const [{ runAdmin }, { printReport }] = await Promise.all([import('./admin/run-admin.ts'), import('../../operations/doctor/finding.ts')])
  if (options.release !== undefined) return printResult(await runAdmin({ name: 'release', args: { process: options.release } }), options.json === true)
  const { probe, only, maxInr, maxSeconds } = options
  const command =
    probe === true ? { name: 'probe-routes', args: { maxInr, maxSeconds, ...(only === undefined ? {} : { only }) } } : { name: 'doctor', args: {} }
  const findings = (await withProgress(commandProgress(), probe === true ? 'Trying the routes' : 'Checking the installation', () =>
    runAdmin(command),
  )) as Finding[]
  const paint = terminalOf(process.stdout)?.paint
  process.exitCode = printReport(findings, options.json === true, line => process.stdout.write(`${line}\n`), paint)
}
