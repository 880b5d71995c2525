/**
 * Runs work that blocks the event loop noticeably, such as parsing a body of 30 MB. It runs one piece at a time, then rests as long as the
 * piece took, and owners take turns. So the event loop is free for other work at least half of the time, whatever one owner sends. Decision
 * 0372 gives the reasons.
 */
import type { Clock } from '../clock.ts'

interface Job {
  run(): void
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

  /** Runs `work` when it is the turn of the organisation's owner. Rejects with the error of `work`. */
  run<T>(orgId: number, work: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      const run = (): void => {
        try {
          resolve(work())
        } catch (error) {
          reject(error)
        }
      }
      const owner = this.#ownerOf(orgId)
      const jobs = this.#waiting.get(owner)
      if (jobs === undefined) this.#waiting.set(owner, [{ run }])
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
