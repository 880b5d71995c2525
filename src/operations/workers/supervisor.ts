/**
 * Runs several gateways of one machine behind one port (WORKERS). This process accepts connections and hands them to its workers. It serves no
 * request itself. The workers share data only through PostgreSQL, like gateways on several machines.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import type { Clock } from '../../platform/clock.ts'
import type { Log } from '../../platform/observe/log.ts'
import { Handover } from './handover.ts'
import type { FromWorker, ToWorker, WorkerFigures } from './messages.ts'

/** A worker that ran for at least this time counts as well started. When it ends, its successor starts immediately. */
const soundMs = 10_000
/** Pauses before a worker starts again after it ended soon after its start. Each further failure uses the next pause. The last pause repeats. */
const pausesMs = [0, 500, 1000, 2000, 5000, 10_000, 30_000] as const
/** How long workers may take to stop in addition to DRAIN_MS. After that, they are killed. */
const stopMarginMs = 30_000
/** How long a worker may take to send its metrics. A slower worker is left out. */
const figuresMs = 3000

export interface SupervisorOptions {
  readonly count: number
  readonly clock: Clock
  readonly log: Log
  readonly drainMs: number
  readonly host: string
  readonly port: number
  /** The program of a worker and its arguments. The port is appended as the last argument. */
  readonly program: readonly [path: string, ...words: string[]]
  /** Prints the banner that the first worker sends when it serves. */
  print(banner: string): void
}

/** The place of one worker. Its number is the label `worker` in metrics. */
interface Place {
  readonly number: number
  worker: ChildProcess | null
  startedAtMs: number
  /** Number of consecutive workers of this place that ended soon after their start. */
  failures: number
}

/** Starts workers, replaces those that end, and stops them all. */
export class Supervisor {
  readonly #options: SupervisorOptions
  readonly #places: readonly Place[]
  readonly #handover = new Handover()
  readonly #living = new Set<ChildProcess>()
  readonly #asked = new Map<number, (figures: WorkerFigures) => void>()
  #asks = 0
  #port = 0
  #isStopping = false
  #reloading: Promise<void> | null = null
  #reloadAgain = false

  constructor(options: SupervisorOptions) {
    this.#options = options
    this.#places = Array.from({ length: options.count }, (_, index) => ({ number: index + 1, worker: null, startedAtMs: 0, failures: 0 }))
  }

  /** Listens, and starts the workers. The first worker starts alone, because it migrates the database. Rejects when a worker ends before it serves. */
  async start(): Promise<void> {
    this.#port = await this.#handover.listen(this.#options)
    const [first, ...others] = this.#places as readonly [Place, ...Place[]]
    const banner = await this.#fill(first)
    await Promise.all(others.map(place => this.#fill(place)))
    this.#options.print(banner)
  }

  /**
   * Replaces the workers one by one. Each new worker serves before the old one stops receiving connections. If a new worker does not start, the
   * reload ends, and the remaining old workers continue. A reload that is requested during a reload runs once afterwards.
   */
  reload(): void {
    if (this.#reloading !== null) {
      this.#reloadAgain = true
      return
    }
    this.#reloading = this.#replaceAll().finally(() => {
      this.#reloading = null
      if (!this.#reloadAgain) return
      this.#reloadAgain = false
      this.reload()
    })
  }

  /** Stops all workers in the same way as a gateway of one process. Resolves when they have ended. */
  async stop(): Promise<void> {
    this.#isStopping = true
    const all = [...this.#living]
    const gone = Promise.all(all.map(exitOf))
    for (const worker of all) worker.kill('SIGTERM')
    const isGone = new AbortController()
    const { clock, drainMs } = this.#options
    await Promise.race([gone, clock.sleep(drainMs + stopMarginMs, isGone.signal).catch(() => {})])
    isGone.abort()
    for (const worker of all) worker.kill('SIGKILL')
    await gone
    this.#handover.close()
  }

  /** Starts a worker for the place. Resolves to its banner when it serves. */
  #fill(place: Place): Promise<string> {
    const worker = this.#fork(place)
    place.worker = worker
    return this.#served(worker)
  }

  #fork(place: Place): ChildProcess {
    const { program, clock } = this.#options
    const [path, ...words] = program
    place.startedAtMs = clock.monotonicMs()
    const worker = fork(path, [...words, String(this.#port), String(place.number)])
    this.#living.add(worker)
    worker.on('message', (message: FromWorker) => this.#onMessage(worker, message))
    // A message cannot be sent when the worker has ended. The exit event handles that case.
    worker.on('error', () => {})
    worker.once('exit', (code, signal) => this.#onExit(worker, code, signal))
    return worker
  }

  /** Waits until a worker serves, then lets it receive connections and returns its banner. Rejects when the worker ends before. */
  async #served(worker: ChildProcess): Promise<string> {
    const banner = await readyOf(worker)
    if (!this.#isStopping) this.#handover.add(worker)
    return banner
  }

  async #replaceAll(): Promise<void> {
    const { log } = this.#options
    for (const place of this.#places) {
      if (this.#isStopping) return
      const old = place.worker
      const next = this.#fork(place)
      try {
        await this.#served(next)
      } catch (error) {
        log.error('a new worker did not start; the old ones go on', { worker: place.number, error })
        return
      }
      place.worker = next
      if (old === null || !this.#living.has(old)) continue
      this.#handover.remove(old)
      tell(old, { kind: 'retire' })
      await exitOf(old)
    }
    log.info('all workers were replaced', { count: this.#places.length })
  }

  #onExit(worker: ChildProcess, code: number | null, signal: string | null): void {
    this.#living.delete(worker)
    this.#handover.remove(worker)
    const place = this.#places.find(each => each.worker === worker)
    // A worker has no place when it was replaced or never served.
    if (place === undefined) return
    place.worker = null
    if (this.#isStopping) return
    const { clock, log } = this.#options
    const isSound = clock.monotonicMs() - place.startedAtMs >= soundMs
    const pauseMs = pausesMs[Math.min(isSound ? 0 : place.failures, pausesMs.length - 1)] ?? 0
    place.failures = isSound ? 0 : place.failures + 1
    log.error('a worker ended and is replaced', { worker: place.number, code: signal ?? `exit ${code}` })
    clock.after(pauseMs, () => {
      // When the new worker ends again, its own exit event handles that.
      if (!this.#isStopping && place.worker === null) this.#fill(place).catch(() => {})
    })
  }

  #onMessage(worker: ChildProcess, message: FromWorker): void {
    if (message.kind === 'taken') this.#handover.taken(message.id)
    else if (message.kind === 'figures') this.#asked.get(message.id)?.({ worker: this.#numberOf(worker), metrics: message.metrics })
    else if (message.kind === 'figures-of-all?') void this.#figures().then(all => tell(worker, { kind: 'figures-of-all', id: message.id, all }))
  }

  /** Returns the metrics of the serving workers that answer in time. */
  #figures(): Promise<readonly WorkerFigures[]> {
    const serving = this.#places.flatMap(({ worker }) => (worker === null ? [] : [worker]))
    const id = ++this.#asks
    const all: WorkerFigures[] = []
    return new Promise(resolve => {
      const end = (): void => {
        stopTimer()
        this.#asked.delete(id)
        resolve(all.sort((a, b) => a.worker - b.worker))
      }
      const stopTimer = this.#options.clock.after(figuresMs, end)
      this.#asked.set(id, figures => {
        all.push(figures)
        if (all.length === serving.length) end()
      })
      for (const worker of serving) tell(worker, { kind: 'figures?', id })
    })
  }

  #numberOf(worker: ChildProcess): number {
    return this.#places.find(each => each.worker === worker)?.number ?? 0
  }
}

/** Sends a message. Does nothing when the worker has just ended. */
function tell(worker: ChildProcess, message: ToWorker): void {
  if (worker.connected) worker.send(message, () => {})
}

const isGone = ({ exitCode, signalCode }: ChildProcess): boolean => exitCode !== null || signalCode !== null

/** Resolves when the worker has ended. */
async function exitOf(worker: ChildProcess): Promise<void> {
  if (!isGone(worker)) await once(worker, 'exit')
}

/** Resolves to the banner when the worker serves. Rejects when the worker ends before. */
function readyOf(worker: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    const onMessage = (message: FromWorker): void => {
      if (message.kind !== 'ready') return
      worker.off('exit', onExit)
      worker.off('message', onMessage)
      resolve(message.banner)
    }
    const onExit = (code: number | null, signal: string | null): void => reject(new Error(`a worker ended with ${signal ?? `code ${code}`} before it served`))
    worker.on('message', onMessage)
    worker.once('exit', onExit)
  })
}
