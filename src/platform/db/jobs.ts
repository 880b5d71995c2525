/**
 * Background work without a queue: periodic jobs that run in one process at a time, and rows that become due. Decision 0014, Decision 0410 and Decision
 * 0464 give the reasons.
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
  /** Whether the database stores the time of the last run. */
  readonly isKept: boolean
  readonly line: JobLine
  readonly run: (signal: AbortSignal) => Promise<void>
}

/**
 * The two lines of a process. Jobs of one line run one after the other. Jobs that call memory stores of organisations are in the line `stores`, because a
 * store may be slow or never answer. All other jobs are in `own`.
 */
export type JobLine = 'own' | 'stores'

/** Each interval varies by up to this share, so that processes that started at the same time do not query at the same time. */
const jitterShare = 0.1

/**
 * For jobs with at least this interval, the database stores the time of the last run. For shorter intervals that would cause frequent writes for little
 * use, because a process lives much longer than the interval.
 */
const keptIntervalMinMs = 60_000

/**
 * Maximum pause before the clock of the database is read again, because it may differ from the timers of this process. A failed job with a stored time is
 * also repeated after this pause.
 */
const lookEveryMs = 10 * 60_000

/**
 * A job that is due at the start begins within this time, at random, so that the processes of a rollout do not all query at the same
 * moment.
 */
const firstLookMs = 5_000

/** How often a statement keeps the transaction with the lock alive. It is far below the 10 s after which the server ends an idle transaction. */
const lockBeatMs = 3000

// Jobs use the advisory locks of class 2. These locks end with the session, whereas a row in a table would have to be removed after a crash.
const tryLock = statement<[name: string], { isMine: boolean }>('jobs.try_lock', 'select pg_try_advisory_xact_lock(2, hashtext($1::text)) as "isMine"')

// A job that the database does not know yet is due one interval from now. The statement uses `clock_timestamp`, because `now()` would be the start of the
// transaction around a run.
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
   * The last run of each line, so that runs of one line do not overlap. A run on PostgreSQL uses one connection for its lock and others for its work. Many
   * concurrent runs could use up the pool and wait for each other. So the minimum of DB_POOL_MAX is one more than the number of lines.
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
   * Runs `run` about every `intervalMs`, in one of the processes that share the database. The pause begins at the end of a run. After an error, which is
   * logged, the next run comes after the normal pause or after 10 min, whichever is sooner. The signal aborts on `stop`. It also aborts within 10 s after
   * the connection with the lock is lost, but in these seconds another process may already start the same job.
   *
   * For intervals of 1 min or more, the pause is measured by the clock of the database, from the last run in any process. A job with such an interval first
   * runs after `start`.
   */
  every(name: string, intervalMs: number, run: (signal: AbortSignal) => Promise<void>, line: JobLine = 'own'): void {
    if (this.#jobs.has(name)) throw new Error(`two jobs are called ${name}`)
    const job: Job = { name, counts: { name, runs: 0, failures: 0 }, intervalMs, isKept: intervalMs >= keptIntervalMinMs, line, run }
    this.#jobs.set(name, job)
    if (!job.isKept) this.#schedule(job, intervalMs)
    else if (this.#isStarted) this.#schedule(job, Math.min(intervalMs, lookEveryMs))
  }

  /**
   * Reads when the jobs last ran and plans the next runs. A job that is already due begins within 5 s. Throws when the database does not
   * answer.
   */
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

  /** The counts of every job. Runs of other processes do not count. */
  get counts(): readonly JobCounts[] {
    return [...this.#jobs.values()].map(({ counts }) => counts)
  }

  /**
   * Runs a job now, or waits for a run in progress. Returns false when another process is running it. Throws the error of the job. For
   * tests and commands.
   */
  runOnce(name: string): Promise<boolean> {
    const job = this.#jobs.get(name)
    if (job === undefined) return Promise.reject(new Error(`there is no job ${name}`))
    const running = this.#running.get(name)
    if (running !== undefined) return running
    return this.#begin(job, false)
  }

  /** Starts no more runs. Resolves when the running ones have ended. */
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
      // When the job is not due, the check costs one query and does not wait for other jobs of the line.
      const waitMs = job.isKept ? await this.#waitMs(this.#db, job) : 0
      if (waitMs > 0) pauseMs = Math.min(waitMs, lookEveryMs)
      else await (this.#running.get(job.name) ?? this.#begin(job, job.isKept))
    } catch (error) {
      // A run that `stop` prevented does not count as failed.
      if (!this.#stop.signal.aborted) this.#log.error('job_failed', { job: job.name, error })
    }
    this.#schedule(job, pauseMs)
  }

  /** Returns the milliseconds until the job is due, by the clock of the database. 0 or less means that it is due. */
  async #waitMs(db: Db | Tx, job: Job): Promise<number> {
    const row = await db.maybe(readAges, [job.name])
    return row === null ? 0 : waitOf(job, row.ageMs)
  }

  /** Adds a run to its line. With `onlyWhenDue` the run does nothing if another process has run the job in the meantime. */
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
    // Only one process uses the embedded database, so no lock is needed. Its single session must stay free for the job.
    if (this.#db.kind === 'embedded') {
      await job.run(this.#stop.signal)
      await this.#keep(this.#db, job, this.#stop.signal)
      return true
    }
    return await this.#runLocked(job, onlyWhenDue)
  }

  /**
   * Keeps the lock in a transaction of its own, while the job works on other connections. The lock ends with the process even after a crash. The time of
   * the run is committed when the lock is released. A statement every few seconds keeps the server from ending the transaction as idle.
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

  /** Stores the time of a completed run. After an aborted run, the job stays due. */
  async #keep(db: Db | Tx, job: Job, signal: AbortSignal): Promise<void> {
    if (job.isKept && !signal.aborted) await db.exec(keepRun, job.name)
  }
}

/**
 * Returns the milliseconds until a job is due. Its last run was `ageMs` ago. A negative age means that the clock was set back. The job is then due after at
 * most one interval.
 */
function waitOf(job: Job, ageMs: number): number {
  return job.intervalMs - Math.abs(ageMs)
}

/**
 * Claims due rows and calls `work` for each, in order. `claim` is an `update ... where id in (select ... for update skip locked limit $n) returning ...`
 * that moves the due time forward, so that the rows of a dead process become due again by themselves. Repeats until a round finds nothing or `roundsMax` is
 * reached. Returns the number of rows. When `work` throws, throws that error, and the remaining rows of the round become due again later.
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
