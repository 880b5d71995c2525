/**
 * Background work without a queue: periodic sweeps, each run by one process at a time, and rows whose due time makes them the job.
 * Decision 0014, Decision 0410 and Decision 0464 say why.
 */
import type { Clock } from '../clock.ts'
import type { Log } from '../observe/log.ts'
import type { Ids } from '../values/ids.ts'
import { DatabaseUnavailableError, type Db, type SqlValue, type Statement, statement, type Tx } from './db.ts'

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
  /** Whether the database keeps when it last ran. */
  readonly isKept: boolean
  readonly line: JobLine
  readonly run: (signal: AbortSignal) => Promise<void>
}

/**
 * The jobs of one line of a process run one after the other. `stores` is for jobs that ask stores of organisations, which may be slow or
 * never answer; `own` is for all others.
 */
export type JobLine = 'own' | 'stores'

/** Runs drift by up to this share of the interval, so that processes that started together do not ask together. */
const jitterShare = 0.1

/** From this interval on it is kept when a job last ran. A process lives longer than the shorter ones, which need no row that is written all the time. */
const keptIntervalMinMs = 60_000

/** Longest pause between two looks at the clock of the database, which may run otherwise than the timers of this process. A kept job that failed is tried again after it. */
const lookEveryMs = 10 * 60_000

/** What was due at the start begins within this time: the processes of a rollout do not all ask at the same moment. */
const firstLookMs = 5_000

/** Well under the 10 s after which the server ends a transaction that does nothing. */
const lockBeatMs = 3000

// Two-key advisory locks of class 2 belong to jobs. A row in an ordinary table would need a clean-up after a crash; these end with the session.
const tryLock = statement<[name: string], { isMine: boolean }>('jobs.try_lock', 'select pg_try_advisory_xact_lock(2, hashtext($1::text)) as "isMine"')

// A job that is not known yet is due one interval from now. `clock_timestamp`, because the transaction around a run is as old as the run.
const noteJobs = statement<[names: readonly string[]]>(
  'jobs.note',
  'insert into job_runs (name, ran_at) select name, clock_timestamp() from unnest($1::text[]) as name on conflict (name) do nothing',
)
const readAges = statement<[names: readonly string[]], { name: string; ageMs: number }>(
  'jobs.ages',
  `select name as "name", (extract(epoch from clock_timestamp() - ran_at) * 1000)::float8 as "ageMs" from job_runs where name = any($1::text[])`,
)
const keepRun = statement<[name: string]>(
  'jobs.keep_run',
  'insert into job_runs (name, ran_at) values ($1::text, clock_timestamp()) on conflict (name) do update set ran_at = excluded.ran_at',
)

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
  /**
   * The last run of each line. A run on PostgreSQL holds one connection for its lock and needs others for its work: many runs together could take
   * the whole pool and wait for each other. Hence the fewest connections of DB_POOL_MAX are one more than there are lines.
   */
  readonly #last: Record<JobLine, Promise<unknown>> = { own: Promise.resolve(), stores: Promise.resolve() }
  #isStarted = false

  constructor(parts: { readonly db: Db; readonly clock: Clock; readonly ids: Ids; readonly log: Log }) {
    this.#db = parts.db
    this.#clock = parts.clock
    this.#ids = parts.ids
    this.#log = parts.log
  }

  /**
   * Runs `run` about every `intervalMs`, in one process of all that share the database; the jobs of one line of a process run one after
   * the other. The pause begins when a run has ended. An error is logged and the next run comes as planned, or after 10 min if that is
   * sooner. The signal aborts on `stop`, and within 10 s when the connection that holds the lock is lost: until then another process
   * may have begun the same job.
   *
   * From an interval of 1 min on the pause counts by the clock of the database and from the last run of any process, also of one that
   * has ended. Such a job waits for `start`.
   */
  every(name: string, intervalMs: number, run: (signal: AbortSignal) => Promise<void>, line: JobLine = 'own'): void {
    if (this.#jobs.has(name)) throw new Error(`two jobs are called ${name}`)
    const job: Job = { name, counts: { name, runs: 0, failures: 0 }, intervalMs, isKept: intervalMs >= keptIntervalMinMs, line, run }
    this.#jobs.set(name, job)
    if (!job.isKept) this.#schedule(job, intervalMs)
    else if (this.#isStarted) this.#schedule(job, Math.min(intervalMs, lookEveryMs))
  }

  /** Reads when the jobs so far last ran and plans the next runs: what is due already begins within 5 s. Throws when the database does not answer. */
  async start(): Promise<void> {
    const kept = [...this.#jobs.values()].filter(({ isKept }) => isKept)
    const names = kept.map(({ name }) => name)
    await this.#db.exec(noteJobs, names)
    const ages = new Map((await this.#db.many(readAges, names)).map(({ name, ageMs }) => [name, ageMs]))
    this.#isStarted = true
    for (const job of kept) {
      const waitMs = waitOf(job, ages.get(job.name) ?? 0)
      this.#after(job, waitMs <= 0 ? firstLookMs * this.#ids.random() : this.#jittered(Math.min(waitMs, lookEveryMs)))
    }
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
    return this.#begin(job, false)
  }

  /** No run begins any more; resolves when those under way have ended. */
  async stop(): Promise<void> {
    this.#stop.abort()
    for (const stopTimer of this.#stopTimers.values()) stopTimer()
    await Promise.allSettled(this.#running.values())
  }

  #schedule(job: Job, pauseMs: number): void {
    this.#after(job, this.#jittered(pauseMs))
  }

  #jittered(ms: number): number {
    return ms * (1 + jitterShare * (this.#ids.random() * 2 - 1))
  }

  #after(job: Job, pauseMs: number): void {
    if (this.#stop.signal.aborted) return
    this.#stopTimers.set(
      job.name,
      this.#clock.after(pauseMs, () => void this.#tick(job)),
    )
  }

  async #tick(job: Job): Promise<void> {
    let pauseMs = Math.min(job.intervalMs, lookEveryMs)
    try {
      // Looks at what is not due cost one query and take no place in the line.
      const waitMs = job.isKept ? await this.#waitMs(this.#db, job) : 0
      if (waitMs > 0) pauseMs = Math.min(waitMs, lookEveryMs)
      else await (this.#running.get(job.name) ?? this.#begin(job, job.isKept))
    } catch (error) {
      // A run that a stop kept from beginning has not failed.
      if (!this.#stop.signal.aborted) this.#log.error('job_failed', { job: job.name, error })
    }
    this.#schedule(job, pauseMs)
  }

  /** Milliseconds until the job is due by the clock of the database; 0 or less: it is. */
  async #waitMs(db: Db | Tx, job: Job): Promise<number> {
    const row = await db.maybe(readAges, [job.name])
    return row === null ? 0 : waitOf(job, row.ageMs)
  }

  /** Puts a run in its line. With `onlyWhenDue` it does nothing when another process ran the job meanwhile. */
  #begin(job: Job, onlyWhenDue: boolean): Promise<boolean> {
    const run = this.#last[job.line].then(() => this.#counted(job, onlyWhenDue)).finally(() => this.#running.delete(job.name))
    this.#last[job.line] = run.catch(() => {})
    this.#running.set(job.name, run)
    return run
  }

  async #counted(job: Job, onlyWhenDue: boolean): Promise<boolean> {
    try {
      const isRun = await this.#run(job, onlyWhenDue)
      if (isRun) job.counts.runs++
      return isRun
    } catch (error) {
      if (!this.#stop.signal.aborted) job.counts.failures++
      throw error
    }
  }

  async #run(job: Job, onlyWhenDue: boolean): Promise<boolean> {
    if (this.#stop.signal.aborted) throw new DatabaseUnavailableError('the jobs are stopped')
    // One process has the embedded database, and its one session must stay free for the job itself.
    if (this.#db.kind === 'embedded') {
      await job.run(this.#stop.signal)
      await this.#keep(this.#db, job, this.#stop.signal)
      return true
    }
    return await this.#runLocked(job, onlyWhenDue)
  }

  /**
   * The lock lives in a transaction of its own that stays open while the job works on other connections: it ends with the process,
   * however that ends. What it notes of the run is there for others when the lock is free. A beat keeps the open transaction from being ended as idle.
   */
  async #runLocked(job: Job, onlyWhenDue: boolean): Promise<boolean> {
    return await this.#db.tx(async tx => {
      if (!(await tx.one(tryLock, job.name)).isMine) return false
      if (onlyWhenDue && (await this.#waitMs(tx, job)) > 0) return false
      const lost = new AbortController()
      let beats: Promise<unknown> = Promise.resolve()
      const stopBeat = this.#clock.every(lockBeatMs, () => {
        beats = beats.then(() => tx.exec(tryLock, job.name)).catch((error: unknown) => lost.abort(error))
      })
      const signal = AbortSignal.any([this.#stop.signal, lost.signal])
      try {
        await job.run(signal)
      } finally {
        stopBeat()
        await beats
      }
      await this.#keep(tx, job, signal)
      return true
    })
  }

  /** Notes a run that ended by itself: one that was told to stop stays due. */
  async #keep(db: Db | Tx, job: Job, signal: AbortSignal): Promise<void> {
    if (job.isKept && !signal.aborted) await db.exec(keepRun, job.name)
  }
}

/** Milliseconds until a job is due whose last run is `ageMs` ago. A run in the future says that the clock was set back: then it is due no later than an interval after that. */
function waitOf(job: Job, ageMs: number): number {
  return job.intervalMs - Math.abs(ageMs)
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
