import type { Clock } from '../../platform/clock.ts'

/** Keys or a token that end. */
export interface Perishable {
  /** Milliseconds since the Unix epoch. Infinity for what does not end. */
  readonly endMs: number
}

/** How long before their end credentials are renewed in the background. Credentials of a short life are renewed in the last quarter of it. */
const aheadMaxMs = 5 * 60_000
/** Credentials that end within this time are not used any more, because a request takes time to arrive. */
const marginMs = 2_000
/** Least time between two renewals in the background. */
const pauseMs = 1_000
/** A failure is remembered for a second. The time doubles with each further failure, up to this maximum. */
const failurePauseMaxMs = 60_000
/** Least time between two renewals that a provider's refusal asks for. */
const forcedEveryMs = 30_000

export interface RenewedOptions<T extends Perishable> {
  readonly clock: Pick<Clock, 'nowMs' | 'after'>
  /** Gets new credentials. `isForced` is true when the provider has refused the last ones before their end. */
  fetch(isForced: boolean): Promise<T>
  /** The longest time that a caller waits for new credentials. */
  readonly waitMaxMs: number
  /** Returns the error for a fetch that takes longer. */
  tooSlow(): Error
}

interface Failure {
  readonly error: unknown
  readonly pauseMs: number
  readonly untilMs: number
}

/**
 * Keeps credentials that end. All callers share one fetch. Before the end, the fetch runs in the background while calls use the old credentials. A failure
 * is remembered for a while, so a source that hangs delays few calls. Decision 0865 gives the reasons.
 */
export class Renewed<T extends Perishable> {
  readonly #options: RenewedOptions<T>
  #current: T | null = null
  #aheadMs = 0
  #running: Promise<T> | null = null
  #notBeforeMs = 0
  #forcedAtMs = Number.NEGATIVE_INFINITY
  #failure: Failure | null = null

  constructor(options: RenewedOptions<T>) {
    this.#options = options
  }

  /** Returns the credentials in use. Null before the first fetch. */
  get current(): T | null {
    return this.#current
  }

  /** Returns valid credentials, synchronously when there are some. Rejects with the error of the fetch. */
  get(): T | Promise<T> {
    const nowMs = this.#options.clock.nowMs()
    const current = this.#current
    if (current === null || current.endMs - marginMs <= nowMs) return this.#fresh(nowMs)
    if (current.endMs - nowMs < this.#aheadMs && this.#running === null && nowMs >= this.#notBeforeMs) this.#fetch(false).catch(() => undefined)
    return current
  }

  /**
   * Returns credentials in place of the ones that a provider has refused. Callers whose refused credentials are already replaced get the newer ones. Returns
   * the refused ones when the last renewal of this kind was less than 30 seconds ago.
   */
  renew(refused: T): T | Promise<T> {
    if (this.#running !== null) return this.#running
    const nowMs = this.#options.clock.nowMs()
    const current = this.#current
    if (current !== null && current !== refused) return current
    if (nowMs - this.#forcedAtMs < forcedEveryMs) return refused
    this.#forcedAtMs = nowMs
    return this.#fetch(true)
  }

  #fresh(nowMs: number): Promise<T> {
    if (this.#running !== null) return this.#running
    if (this.#failure !== null && nowMs < this.#failure.untilMs) return Promise.reject(this.#failure.error)
    return this.#fetch(false)
  }

  #fetch(isForced: boolean): Promise<T> {
    const { clock } = this.#options
    this.#running = this.#bounded(isForced)
      .then(made => {
        this.#current = made
        this.#aheadMs = Math.min(aheadMaxMs, (made.endMs - clock.nowMs()) / 4)
        this.#failure = null
        return made
      })
      .catch((error: unknown) => {
        const pause = Math.min(this.#failure === null ? pauseMs : this.#failure.pauseMs * 2, failurePauseMaxMs)
        this.#failure = { error, pauseMs: pause, untilMs: clock.nowMs() + pause }
        throw error
      })
      .finally(() => {
        this.#notBeforeMs = clock.nowMs() + pauseMs
        this.#running = null
      })
    return this.#running
  }

  /** Runs the fetch, and gives it up after the longest wait. */
  #bounded(isForced: boolean): Promise<T> {
    const { clock, fetch, waitMaxMs, tooSlow } = this.#options
    return new Promise((resolve, reject) => {
      const stop = clock.after(waitMaxMs, () => reject(tooSlow()))
      fetch(isForced).then(resolve, reject).finally(stop)
    })
  }
}

/** Returns whether there are other credentials in place of refused ones. They are fetched if nobody has done it. Never rejects. */
export async function isReplaced<T extends Perishable>(source: Pick<Renewed<T>, 'renew'>, refused: T): Promise<boolean> {
  try {
    return (await source.renew(refused)) !== refused
  } catch {
    return false
  }
}
