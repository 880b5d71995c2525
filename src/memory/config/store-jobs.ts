import { fail } from '../../platform/errors.ts'

/** Runs work on a whole store: configuring, probing and comparing. An organisation has at most one such job at a time in this process. */
export class StoreJobs {
  readonly #running = new Set<number>()

  /** Throws `memory_busy` while another job of the organisation runs, and the errors of the work. */
  async run<T>(orgId: number, work: () => Promise<T>): Promise<T> {
    if (this.#running.has(orgId))
      throw fail('memory_busy', {
        message: 'The memory store of this organisation is being configured, probed or compared just now. Try again when that has ended.',
        retryAfterSeconds: 5,
      })
    this.#running.add(orgId)
    try {
      return await work()
    } finally {
      this.#running.delete(orgId)
    }
  }
}
