/**
 * Turns for work that takes long enough for others to notice, such as parsing a body of 30 MB: one piece at a time, a rest as long as the
 * piece took behind it, and owners in turn. Whatever one of them sends, the event loop belongs to the others for half of the time.
 * Decision 0372 says why.
 */
import type { Clock } from '../clock.ts'

interface Job {
  run(): void
}

/** The turns of one process. */
export class HeavyTurns {
  readonly #clock: Pick<Clock, 'monotonicMs' | 'sleep'>
  readonly #ownerOf: (orgId: number) => string
  readonly #waiting = new Map<string, Job[]>()
  #isBusy = false

  /** `ownerOf` says who owns an organisation: owners take turns. Left out: each organisation has an owner of its own. */
  constructor(clock: Pick<Clock, 'monotonicMs' | 'sleep'>, ownerOf: (orgId: number) => string = String) {
    this.#ownerOf = ownerOf
    this.#clock = clock
  }

  /** Does the work when it is the turn of the organisation's owner. Rejects with what it throws. */
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

  /** The next job of the owner that has waited longest; the owner then waits behind the others. */
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
