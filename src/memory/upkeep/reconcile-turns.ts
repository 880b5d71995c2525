/** How the comparisons that run in one process take turns. Decision 0495 gives the reasons. */
import type { Clock } from '../../platform/clock.ts'
import { fail } from '../../platform/errors.ts'
import { KeyQueue } from '../access/key-queue.ts'

/** Maximum number of requested comparisons that run concurrently in one process. Others wait for their turn. */
const requestedAtOnce = 4
/** After this time a requested comparison gives its place to one that waits. */
const turnMs = 60_000
const healing = 'heal'

/** Lets a comparison give way to others. It may be called between any two chunks or pages. */
export type Yield = () => Promise<void>

export class ReconcileTurns {
  readonly #clock: Clock
  readonly #founderOf: (orgId: number) => string
  readonly #founders = new Set<string>()
  readonly #waiting: (() => void)[] = []
  readonly #healing: KeyQueue
  #running = 0

  /** `founderOf` returns the founder of an organisation, by its id. */
  constructor(clock: Clock, founderOf: (orgId: number) => string) {
    this.#clock = clock
    this.#founderOf = founderOf
    this.#healing = new KeyQueue(clock)
  }

  /**
   * Runs a requested comparison. It takes turns of a minute with the comparisons of other founders. Throws `memory_busy` while another requested comparison
   * runs for an organisation of the same founder. Also throws the errors of the work.
   */
  async run<T>(orgId: number, work: (pass: Yield) => Promise<T>): Promise<T> {
    const founder = this.#founderOf(orgId)
    if (this.#founders.has(founder))
      throw fail('memory_busy', {
        message: 'The store of this organisation, or of another one of its founder, is being compared just now. Try again when that has ended.',
        retryAfterSeconds: 5,
      })
    this.#founders.add(founder)
    try {
      await this.#begin()
      let endMs = this.#clock.monotonicMs() + turnMs
      const pass = async (): Promise<void> => {
        if (this.#waiting.length === 0 || this.#clock.monotonicMs() < endMs) return
        this.#end()
        await this.#begin()
        endMs = this.#clock.monotonicMs() + turnMs
      }
      try {
        return await work(pass)
      } finally {
        this.#end()
      }
    } finally {
      this.#founders.delete(founder)
    }
  }

  /**
   * Runs one statement that changes many keys. Only one such statement runs at a time in this process. Afterwards all comparisons pause for as long as the
   * statement took, so the database is free for others at least half of the time.
   */
  heal<T>(statement: () => Promise<T>): Promise<T> {
    return this.#healing.run(healing, async () => {
      const startedMs = this.#clock.monotonicMs()
      try {
        return await statement()
      } finally {
        this.#healing.rest(healing, Math.ceil(this.#clock.monotonicMs() - startedMs))
      }
    })
  }

  async #begin(): Promise<void> {
    if (this.#running < requestedAtOnce) this.#running++
    else await new Promise<void>(resolve => this.#waiting.push(resolve))
  }

  /** Ends a turn. The comparison that has waited longest gets its place. */
  #end(): void {
    const next = this.#waiting.shift()
    if (next === undefined) this.#running--
    else next()
  }
}
