/**
 * Turns for work that is long enough to delay others, such as parsing a body of 30 MB. One piece runs at a time, followed by a rest that is as long as
 * the piece, and organisations take turns. Whatever one organisation sends, half of the event loop's time is left for the others. Decision 0372 says
 * why.
 */
import type { Clock } from '../clock.ts'

interface Job {
  run(): void
}

/** The turns of one process. */
export class HeavyTurns {
  readonly #clock: Pick<Clock, 'monotonicMs' | 'sleep'>
  readonly #waiting = new Map<number, Job[]>()
  #isBusy = false

  constructor(clock: Pick<Clock, 'monotonicMs' | 'sleep'>) {
    this.#clock = clock
  }

  /** Does the work when it is the organisation's turn. Rejects with what it throws. */
  run<T>(orgId: number, work: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      const run = (): void => {
        try {
          resolve(work())
        } catch (error) {
          reject(error)
        }
      }
      const jobs = this.#waiting.get(orgId)
      if (jobs === undefined) this.#waiting.set(orgId, [{ run }])
      else jobs.push({ run })
      if (!this.#isBusy) void this.#work()
    })
  }

  async #work(): Promise<void> {
    this.#isBusy = true
    for (let job = this.#next(); job !== null; job = this.#next()) {
      const startedMs = this.#clock.monotonicMs()
      job.run()
      await this.#clock.sleep(Math.ceil(this.#clock.monotonicMs() - startedMs))
    }
    this.#isBusy = false
  }

  /** The next job of the organisation that has waited longest; the organisation then waits after the others. */
  #next(): Job | null {
    for (const [orgId, jobs] of this.#waiting) {
      const job = jobs.shift()
      this.#waiting.delete(orgId)
      if (jobs.length > 0) this.#waiting.set(orgId, jobs)
      if (job !== undefined) return job
    }
    return null
  }
}
