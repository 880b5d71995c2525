/**
 * Several gateways of one machine behind one port (WORKERS). This process accepts connections and hands them to its workers; it serves nothing itself. Towards
 * each other the workers are like gateways on several machines: what they share is in PostgreSQL.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import type { Clock } from '../../platform/clock.ts'
import type { Log } from '../../platform/observe/log.ts'
import { Handover } from './handover.ts'
import type { FromWorker, ToWorker, WorkerFigures } from './messages.ts'

/** A worker that lived for so long had started well: the next one is started immediately. */
const soundMs = 10_000
/** Pauses before a worker is started again that ended soon after its start, one after the other; the last one stays. */
const pausesMs = [0, 500, 1000, 2000, 5000, 10_000, 30_000] as const
/** How long workers may take to stop beyond DRAIN_MS before they are killed. */
const stopMarginMs = 30_000
/** How long a worker may take to tell its figures. One that is slower is left out. */
const figuresMs = 3000

export interface SupervisorOptions {
  readonly count: number
  readonly clock: Clock
  readonly log: Log
  readonly drainMs: number
  readonly host: string
  readonly port: number
  /** The program of a worker and its arguments; the port comes behind them. */
  readonly program: readonly [path: string, ...words: string[]]
  /** Gets what the first worker prints when it serves. */
  print(banner: string): void
}

/** One place among the workers. Its number is the `worker` label of figures. */
interface Place {
  readonly number: number
  worker: ChildProcess | null
  startedAtMs: number
  /** Workers in a row that ended soon after their start. */
  failures: number
}

/** Starts workers, replaces those that end, and ends them all. */
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

  /** Listens, then starts the first worker, which brings the database up to date, then the others. Rejects when one of them ends before it serves. */
  async start(): Promise<void> {
    this.#port = await this.#handover.listen(this.#options)
    const [first, ...others] = this.#places as readonly [Place, ...Place[]]
    const banner = await this.#fill(first)
    await Promise.all(others.map(place => this.#fill(place)))
    this.#options.print(banner)
  }

  /**
   * Replaces the workers one by one: each new one serves before the old one gets no more connections. It stops at a new worker that does not serve, and the old
   * ones go on. What is asked for meanwhile is done afterwards, once.
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

  /** Lets all workers stop like a gateway of one process, and resolves when they are gone. */
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

  /** Starts a worker for the place; resolves to its banner when it serves. */
  #fill(place: Place): Promise<string> {
    const worker = this.#fork(place)
    place.worker = worker
    return this.#served(worker)
  }

  #fork(place: Place): ChildProcess {
    const { program, clock } = this.#options
    const [path, ...words] = program
    place.startedAtMs = clock.monotonicMs()
    const worker = fork(path, [...words, String(this.#port)])
    this.#living.add(worker)
    worker.on('message', (message: FromWorker) => this.#onMessage(worker, message))
    // A message that did not reach it is seen by its end.
    worker.on('error', () => {})
    worker.once('exit', (code, signal) => this.#onExit(worker, code, signal))
    return worker
  }

  /** Resolves to the banner of a worker when it serves, and gives it connections; rejects when it ends before. */
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
    // One that was replaced or never served has no place.
    if (place === undefined) return
    place.worker = null
    if (this.#isStopping) return
    const { clock, log } = this.#options
    const isSound = clock.monotonicMs() - place.startedAtMs >= soundMs
    const pauseMs = pausesMs[Math.min(isSound ? 0 : place.failures, pausesMs.length - 1)] ?? 0
    place.failures = isSound ? 0 : place.failures + 1
    log.error('a worker ended and is replaced', { worker: place.number, code: signal ?? `exit ${code}` })
    clock.after(pauseMs, () => {
      // That it ends again is seen by its end.
      if (!this.#isStopping && place.worker === null) this.#fill(place).catch(() => {})
    })
  }

  #onMessage(worker: ChildProcess, message: FromWorker): void {
    if (message.kind === 'taken') this.#handover.taken(message.id)
    else if (message.kind === 'figures') this.#asked.get(message.id)?.({ worker: this.#numberOf(worker), metrics: message.metrics })
    else if (message.kind === 'figures-of-all?') void this.#figures().then(all => tell(worker, { kind: 'figures-of-all', id: message.id, all }))
  }

  /** The figures of the workers that serve and answer in time. */
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

/** A worker that has just ended is told nothing. */
function tell(worker: ChildProcess, message: ToWorker): void {
  if (worker.connected) worker.send(message, () => {})
}

const isGone = ({ exitCode, signalCode }: ChildProcess): boolean => exitCode !== null || signalCode !== null

/** Resolves when the worker is gone. */
async function exitOf(worker: ChildProcess): Promise<void> {
  if (!isGone(worker)) await once(worker, 'exit')
}

/** Resolves to the banner when the worker serves; rejects when it ends before. */
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
