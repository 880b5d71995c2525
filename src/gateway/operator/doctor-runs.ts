import type { Clock } from '../../platform/clock.ts'
import { fail } from '../../platform/errors.ts'

/** The result of one check. The doctor of `brigade doctor` makes it. */
export interface DoctorFinding {
  readonly what: string
  readonly state: 'ok' | 'warning' | 'wrong'
  readonly detail: string
}

/** The findings of a run, and when the run ended. */
export interface DoctorReport {
  readonly findings: readonly DoctorFinding[]
  readonly checkedAt: Date
}

export interface DoctorRunsDeps {
  readonly clock: Clock
  /** Runs all checks. */
  diagnose(): Promise<readonly DoctorFinding[]>
}

/** How long a report is used again. The checks read much of the database, so a page that reloads must not repeat them. */
const reuseMs = 5_000
/** How long a request waits for the checks. */
const waitMaxMs = 30_000

/** Runs the doctor for requests. A process runs it once at a time, and requests that arrive during a run share its result. */
export class DoctorRuns {
  readonly #deps: DoctorRunsDeps
  #running: Promise<DoctorReport> | null = null
  #last: { readonly report: DoctorReport; readonly atMs: number } | null = null

  constructor(deps: DoctorRunsDeps) {
    this.#deps = deps
  }

  /** Returns the findings of a run that ended at most 5 seconds ago, or of a new one. Throws `unavailable` when the checks take more than 30 seconds. */
  async report(): Promise<DoctorReport> {
    const { clock } = this.#deps
    if (this.#last !== null && clock.monotonicMs() - this.#last.atMs < reuseMs) return this.#last.report
    this.#running ??= this.#run().finally(() => {
      this.#running = null
    })
    return this.#within(this.#running)
  }

  async #run(): Promise<DoctorReport> {
    const { clock, diagnose } = this.#deps
    const findings = await diagnose()
    const report = { findings, checkedAt: new Date(clock.nowMs()) }
    this.#last = { report, atMs: clock.monotonicMs() }
    return report
  }

  /** A run that takes too long goes on, and a later request receives its result. */
  async #within(running: Promise<DoctorReport>): Promise<DoctorReport> {
    let stop = (): void => undefined
    const late = new Promise<never>((_done, refuse) => {
      stop = this.#deps.clock.after(waitMaxMs, () =>
        refuse(fail('unavailable', { message: `The doctor has not finished within ${waitMaxMs / 1000} s. It goes on; ask again in a minute.` })),
      )
    })
    try {
      return await Promise.race([running, late])
    } finally {
      stop()
    }
  }
}
