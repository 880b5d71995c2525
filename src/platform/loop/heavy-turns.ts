/**
 * Runs work that blocks the event loop noticeably, such as parsing a body of 30 MB. One piece of work runs at a time, followed by a pause as long as the
 * piece took. Owners take turns. So the event loop is free for other work at least half of the time, and no owner can block the others. Decision 0372 gives
 * the reasons.
 */
import type { Clock } from '../clock.ts'
import type { CancelSignal } from './cancellation.ts'
import { nextTurn } from './next-turn.ts'

interface Job {
  run(): void
  /** True: the turn also includes the code that runs after the work without waiting for the event loop. */
  readonly withSequel: boolean
}

/** The queue of heavy work in one process. */
export class HeavyTurns {
  readonly #clock: Pick<Clock, 'monotonicMs' | 'sleep'>
  readonly #ownerOf: (orgId: number) => string
  readonly #waiting = new Map<string, Job[]>()
  #isBusy = false

  /** `ownerOf` returns the owner of an organisation; owners take turns. When absent, each organisation is its own owner. */
  constructor(clock: Pick<Clock, 'monotonicMs' | 'sleep'>, ownerOf: (orgId: number) => string = String) {
    this.#ownerOf = ownerOf
    this.#clock = clock
  }

  /**
   * Runs `work` when it is the turn of the organisation's owner. Rejects with the error of `work`. When `signal` aborts before the turn, the work gives up
   * its place and never runs, and the promise rejects with the signal's reason.
   */
  run<T>(orgId: number, work: () => T, signal?: CancelSignal): Promise<T> {
    return this.#queue(orgId, work, false, signal)
  }

  /**
   * Runs `work` as `run` does. The turn also contains what the waiting code does with the result until it waits for a timer, a file or the network. It is
   * for work that a library does with the result. Rejects as `run` does.
   */
  runWithSequel<T>(orgId: number, work: () => T, signal?: CancelSignal): Promise<T> {
    return this.#queue(orgId, work, true, signal)
  }

  #queue<T>(orgId: number, work: () => T, withSequel: boolean, signal: CancelSignal | undefined): Promise<T> {
    if (signal?.aborted) return Promise.reject(signal.reason)
    return new Promise((resolve, reject) => {
      const owner = this.#ownerOf(orgId)
      const leave = (): void => {
        this.#remove(owner, job)
        reject(signal?.reason)
      }
      const run = (): void => {
        signal?.removeEventListener('abort', leave)
        try {
          resolve(work())
        } catch (error) {
          reject(error)
        }
      }
      const job: Job = { run, withSequel }
      signal?.addEventListener('abort', leave, { once: true })
      const jobs = this.#waiting.get(owner)
      if (jobs === undefined) this.#waiting.set(owner, [job])
      else jobs.push(job)
      if (!this.#isBusy) void this.#work()
    })
  }

  #remove(owner: string, job: Job): void {
    const jobs = this.#waiting.get(owner) ?? []
    const at = jobs.indexOf(job)
    if (at >= 0) jobs.splice(at, 1)
    if (jobs.length === 0) this.#waiting.delete(owner)
  }

  async #work(): Promise<void> {
    this.#isBusy = true
    for (let job = this.#next(); job !== null; job = this.#next()) {
      const startedMs = this.#clock.monotonicMs()
      job.run()
      if (job.withSequel) await nextTurn()
      await this.#clock.sleep(Math.ceil(this.#clock.monotonicMs() - startedMs))
    }
    this.#isBusy = false
  }

  /** Returns the next job of the owner that has waited longest. That owner then goes to the end of the queue. */
  #next(): Job | null {
    for (const [owner, jobs] of this.#waiting) {
      const job = jobs.shift()
      this.#waiting.delete(owner)
      if (jobs.length > 0) this.#waiting.set(owner, jobs)
      if (job !== undefined) return job
    }
    return null
  }
}
