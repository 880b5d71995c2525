import { fileURLToPath } from 'node:url'
import { banner } from './cli/operator/banner.ts'
import type { RunningGateway, ServeOptions } from './composition/serve.ts'
import { Supervisor } from './operations/workers/supervisor.ts'
import { WorkerChannel } from './operations/workers/worker.ts'
import { workerCount } from './operations/workers/worker-count.ts'
import { systemClock } from './platform/clock.ts'
import { type Config, ConfigError, loadConfig } from './platform/config.ts'
import { collectGarbage } from './platform/loop/collect-garbage.ts'
import { makeLog } from './platform/observe/log.ts'
import { noProgress, type Progress, progressOn } from './platform/observe/terminal/progress.ts'
import { terminalOf } from './platform/observe/terminal/terminal.ts'

/** Shows on a terminal what the start does. */
let progress: Progress = progressOn(terminalOf(process.stderr), systemClock)

/** Starts the process: reads the configuration, starts the gateway or its workers, and handles signals. */
async function main(): Promise<void> {
  const config = loadConfig()
  const workers = workerCount(config)
  const place = placeOfWorker(process.argv)
  if (place !== null) await serveAsWorker(config, workers, place)
  else if (workers === 1) await serve(config)
  else await supervise(config, workers)
}

/** Runs one gateway in this process. */
async function serve(config: Config): Promise<void> {
  const gateway = await start(config, { onGivenUp: error => end(error.message) })
  // Signals are handled before the output says that the gateway listens.
  stopOnSignals(() => gateway.stop())
  await collectGarbage()
  process.stdout.write(await bannerOf(gateway))
  void gateway.app.reportRefusedKeys()
}

/** Starts a gateway in this process. Its code is loaded here, because a process that only supervises workers does not need it. */
async function start(config: Config, options: ServeOptions): Promise<RunningGateway> {
  progress.now('Loading Brigade')
  const { startGateway } = await import('./composition/serve.ts')
  const requestsOn = showsRequests.has(config.LOG_LEVEL) ? terminalOf(process.stderr) : null
  return startGateway(config, { ...options, progress, requestsOn })
}

/** The values of LOG_LEVEL at which a terminal shows a line for each request. */
const showsRequests = new Set(['info', 'debug', 'trace'])

function bannerOf(gateway: RunningGateway, workers = 1): Promise<string> {
  progress.done()
  return banner(gateway, { workers, terminal: terminalOf(process.stdout), readyMs: systemClock.monotonicMs() })
}

/** Runs WORKERS gateways in separate processes. SIGHUP replaces them one by one. */
async function supervise(config: Config, count: number): Promise<void> {
  const supervisor = new Supervisor({
    count,
    clock: systemClock,
    log: makeLog(config.LOG_LEVEL),
    drainMs: config.DRAIN_MS,
    host: config.HOST,
    port: config.PORT,
    program: [fileURLToPath(import.meta.url), workerWord],
    print: text => process.stdout.write(text),
  })
  stopOnSignals(() => supervisor.stop())
  process.on('SIGHUP', () => supervisor.reload())
  try {
    await supervisor.start()
  } catch (error) {
    await supervisor.stop()
    end(error)
  }
}

/** The argument of a worker, which comes before the port that it serves and its number. */
const workerWord = '--worker'

interface WorkerPlace {
  readonly port: number
  /** The first worker speaks for all, so that a start shows each thing once. */
  readonly isFirst: boolean
}

function placeOfWorker(words: readonly string[]): WorkerPlace | null {
  const at = words.indexOf(workerWord)
  return at === -1 || process.send === undefined ? null : { port: Number(words[at + 1]), isFirst: words[at + 2] === '1' }
}

async function serveAsWorker(config: Config, count: number, { port, isFirst }: WorkerPlace): Promise<void> {
  const channel = new WorkerChannel(systemClock, port)
  if (!isFirst) progress = noProgress
  const gateway = await start(config, { workers: channel, onGivenUp: error => end(error.message) })
  stopOnSignals(() => gateway.stop())
  // A supervisor that was killed no longer passes connections on.
  process.once('disconnect', () => stopWith(() => gateway.stop()))
  // A terminal sends SIGHUP to all processes, and only the supervisor reacts to it.
  process.on('SIGHUP', () => {})
  await collectGarbage()
  channel.ready(await bannerOf(gateway, count), () => void gateway.app.retire().then(() => stopWith(() => gateway.stop())))
  if (isFirst) void gateway.app.reportRefusedKeys()
}

function stopOnSignals(stop: () => Promise<void>): void {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => stopWith(stop))
}

function stopWith(stop: () => Promise<void>): void {
  progress.now('Stopping')
  void stop().then(
    () => {
      progress.done()
      process.exit(0)
    },
    error => {
      progress.done()
      process.stderr.write(`stopping failed: ${error instanceof Error ? error.message : String(error)}\n`)
      process.exit(1)
    },
  )
}

/** Prints the reason and ends the process, so that its supervisor starts a new one. */
function end(error: unknown): void {
  progress.done()
  process.stderr.write(`brigade: ${wordsOf(error)}\n`)
  process.exit(1)
}

/** Returns the message. An error that a person can correct has no stack. */
function wordsOf(error: unknown): string {
  if (error instanceof ConfigError) return error.message
  if (!(error instanceof Error)) return String(error)
  const { code, address, port } = error as NodeJS.ErrnoException & { readonly address?: string; readonly port?: number }
  if (code === 'EADDRINUSE') return `port ${port} at ${address} is taken, perhaps by another Brigade. Stop that, or set PORT.`
  if (code === 'EACCES' && port !== undefined) return `this user may not listen on port ${port}. Set PORT to one above 1023.`
  if (code === 'EADDRNOTAVAIL') return `this machine has no address ${address}. Set HOST to one that it has.`
  return error.stack ?? error.message
}

main().catch(end)
