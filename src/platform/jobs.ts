/**
 * Background work without a queue: periodic sweeps, each run by one process at a time, and rows whose due time makes them the job.
 */
import type { Clock } from './clock.ts'
import { DatabaseUnavailableError, type Db, type SqlValue, type Statement, statement, type Tx } from './db.ts'
import type { Ids } from './ids.ts'
import type { Log } from './log.ts'

/** How often a job has run in this process, and how often it has failed. */
export interface JobCounts {
  readonly name: string
  runs: number
  failures: number
}

interface Job {
  readonly name: string
  readonly counts: JobCounts
  readonly intervalMs: number
  readonly run: (signal: AbortSignal) => Promise<void>
}

/** Runs drift by up to this share of the interval, so that processes that started together do not ask together. */
const jitterShare = 0.1

/** Well under the 30 s after which the server ends a transaction that does nothing. */
const lockBeatMs = 10_000

// Two-key advisory locks of class 2 belong to jobs. A row in an ordinary table would need a clean-up after a crash; these end with the session.
const tryLock = statement<[name: string], { isMine: boolean }>('jobs.try_lock', 'select pg_try_advisory_xact_lock(2, hashtext($1::text)) as "isMine"')

/** The periodic sweeps of one process. */
export class Jobs {
  readonly #db: Db
  readonly #clock: Clock
  readonly #ids: Ids
  readonly #log: Log
  readonly #jobs = new Map<string, Job>()
  readonly #running = new Map<string, Promise<boolean>>()
  readonly #stopTimers = new Map<string, () => void>()
  readonly #stop = new AbortController()
  /** The last run in line. A run on PostgreSQL holds one connection for its lock and needs others for its work: many at once could take the whole pool and wait for each other. */
  #last: Promise<unknown> = Promise.resolve()

  constructor(parts: { readonly db: Db; readonly clock: Clock; readonly ids: Ids; readonly log: Log }) {
    this.#db = parts.db
    this.#clock = parts.clock
    this.#ids = parts.ids
    this.#log = parts.log
  }

  /**
   * Runs `run` about every `intervalMs`, in one process of all that share the database; the jobs of one process run one after the
   * other. The pause begins when a run has ended. An error is logged and the next run comes as planned. The signal aborts on `stop`,
   * and within 10 s when the connection that holds the lock is lost: until then another process may have begun the same job.
   */
  every(name: string, intervalMs: number, run: (signal: AbortSignal) => Promise<void>): void {
    if (this.#jobs.has(name)) throw new Error(`two jobs are called ${name}`)
    const job: Job = { name, counts: { name, runs: 0, failures: 0 }, intervalMs, run }
    this.#jobs.set(name, job)
    this.#schedule(job)
  }

  /** Every job with its counts. A run that another process had is none. */
  get counts(): readonly JobCounts[] {
    return [...this.#jobs.values()].map(({ counts }) => counts)
  }

  /** Runs a job now, or waits for the run that is under way. False when another process has it. Errors rise: for tests and commands. */
  runOnce(name: string): Promise<boolean> {
    const job = this.#jobs.get(name)
    if (job === undefined) return Promise.reject(new Error(`there is no job ${name}`))
    const running = this.#running.get(name)
    if (running !== undefined) return running
    const run = this.#last.then(() => this.#counted(job)).finally(() => this.#running.delete(name))
    this.#last = run.catch(() => {})
    this.#running.set(name, run)
    return run
  }

  /** No run begins any more; resolves when those under way have ended. */
  async stop(): Promise<void> {
    this.#stop.abort()
    for (const stopTimer of this.#stopTimers.values()) stopTimer()
    await Promise.allSettled(this.#running.values())
  }

  #schedule(job: Job): void {
    if (this.#stop.signal.aborted) return
    const pauseMs = job.intervalMs * (1 + jitterShare * (this.#ids.random() * 2 - 1))
    this.#stopTimers.set(
      job.name,
      this.#clock.after(pauseMs, () => void this.#tick(job)),
    )
  }

  async #tick(job: Job): Promise<void> {
    try {
      await this.runOnce(job.name)
    } catch (error) {
      // A run that a stop kept from beginning has not failed.
      if (!this.#stop.signal.aborted) this.#log.error('job_failed', { job: job.name, error })
    }
    this.#schedule(job)
  }

  async #counted(job: Job): Promise<boolean> {
    try {
      const isRun = await this.#run(job)
      if (isRun) job.counts.runs++
      return isRun
    } catch (error) {
      if (!this.#stop.signal.aborted) job.counts.failures++
      throw error
    }
  }

  async #run(job: Job): Promise<boolean> {
    if (this.#stop.signal.aborted) throw new DatabaseUnavailableError('the jobs are stopped')
    // One process has the embedded database, and its one session must stay free for the job itself.
    if (this.#db.kind === 'embedded') {
      await job.run(this.#stop.signal)
      return true
    }
    return await this.#runLocked(job)
  }

  /**
   * The lock lives in a transaction of its own that stays open while the job works on other connections: it ends with the process,
   * however that ends. A beat keeps the open transaction from being ended as idle.
   */
  async #runLocked(job: Job): Promise<boolean> {
    return await this.#db.tx(async tx => {
      if (!(await tx.one(tryLock, job.name)).isMine) return false
      const lost = new AbortController()
      let beats: Promise<unknown> = Promise.resolve()
      const stopBeat = this.#clock.every(lockBeatMs, () => {
        beats = beats.then(() => tx.exec(tryLock, job.name)).catch((error: unknown) => lost.abort(error))
      })
      try {
        await job.run(AbortSignal.any([this.#stop.signal, lost.signal]))
      } finally {
        stopBeat()
        await beats
      }
      return true
    })
  }
}

/**
 * Takes rows that are due: `claim` is an `update ... where id in (select ... for update skip locked limit $n) returning ...` that
 * pushes the due time ahead, so that a claim whose process died comes back by itself. Calls `work` for each row in order and repeats
 * until a round finds nothing or `roundsMax` is reached; how many rows were worked on. An error of `work` rises and leaves the rest
 * of the round to their new due time.
 */
export async function claimDue<P extends readonly SqlValue[], R>(
  db: Db | Tx,
  claim: Statement<P, R>,
  params: () => P,
  work: (row: R) => Promise<void>,
  roundsMax: number,
): Promise<number> {
  let count = 0
  for (let round = 0; round < roundsMax; round++) {
    const rows = await db.many(claim, ...params())
    if (rows.length === 0) break
    for (const row of rows) await work(row)
    count += rows.length
  }
  return count
}
