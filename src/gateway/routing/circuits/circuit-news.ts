/** Tells other processes when a circuit opens or closes in this process. Only changes are sent, and no call waits for the write. */
import type { Clock } from '../../../platform/clock.ts'
import type { ControlLog, News, NewsItem } from '../../../platform/db/db-control-log.ts'
import type { Log } from '../../../platform/observe/log.ts'
import type { RouteId } from '../../catalog/model.ts'
import type { CircuitChange, Circuits } from './circuit.ts'

/** The functions of the circuits that this file calls. */
export type ToldCircuits = Pick<Circuits, 'available' | 'remainingMs' | 'openedElsewhere' | 'closedElsewhere'>

const openedKind = 'circuit_opened'
const closedKind = 'circuit_closed'
/** Wait after a failed write, in milliseconds. */
const retryMs = 2_000

export interface CircuitNewsDeps {
  readonly clock: Clock
  readonly log: Log
  readonly controlLog: Pick<ControlLog, 'on' | 'change'>
  /** Identifies this process, so that it ignores its own events. */
  readonly processName: string
  /** Is called when another process reports that a circuit opened, if this process did not know that. */
  opened?(routeId: RouteId): void
}

/**
 * Sends changes of circuits that dials of this process caused, and applies the changes that other processes send. If a circuit changes several times
 * while the database is unavailable, only its last state is written. An opening whose open time has passed by then is not sent.
 */
export class CircuitNews {
  readonly #deps: CircuitNewsDeps
  readonly #circuits: ToldCircuits
  readonly #untold = new Map<RouteId, CircuitChange>()
  #isTelling = false
  #cancelRetry: (() => void) | null = null
  #stopped = false

  constructor(circuits: ToldCircuits, deps: CircuitNewsDeps) {
    this.#circuits = circuits
    this.#deps = deps
    deps.controlLog.on(news => this.#onNews(news))
  }

  /** Returns immediately. The write runs in the background. */
  notify(routeId: RouteId, change: CircuitChange): void {
    this.#untold.set(routeId, change)
    if (this.#cancelRetry === null) void this.#notifyAll()
  }

  stop(): void {
    this.#stopped = true
    this.#cancelRetry?.()
  }

  async #notifyAll(): Promise<void> {
    if (this.#isTelling) return
    this.#isTelling = true
    while (this.#untold.size > 0 && !this.#stopped) {
      const batch = [...this.#untold]
      this.#untold.clear()
      const news = batch.flatMap(([routeId, change]) => this.#newsOf(routeId, change))
      try {
        if (news.length > 0) await this.#deps.controlLog.change(async () => ({ value: undefined, news }))
      } catch (error) {
        this.#deps.log.warn('circuits_not_told', { error })
        // A newer change of the same route replaces the one that could not be written.
        for (const [routeId, change] of batch) if (!this.#untold.has(routeId)) this.#untold.set(routeId, change)
        this.#retryLater()
        break
      }
    }
    this.#isTelling = false
  }

  #retryLater(): void {
    if (this.#stopped) return
    this.#cancelRetry = this.#deps.clock.after(retryMs, () => {
      this.#cancelRetry = null
      void this.#notifyAll()
    })
  }

  /** The epoch of an opening is the remaining open time in milliseconds. A duration needs no comparison of the clocks of two processes. */
  #newsOf(routeId: RouteId, change: CircuitChange): readonly NewsItem[] {
    const ref = `${this.#deps.processName} ${routeId}`
    if (change === 'closed') return [{ kind: closedKind, ref }]
    const remainingMs = this.#circuits.remainingMs(routeId)
    return remainingMs > 0 ? [{ kind: openedKind, ref, epoch: remainingMs }] : []
  }

  #onNews({ kind, ref, epoch }: News): void {
    if (kind !== openedKind && kind !== closedKind) return
    const space = ref.indexOf(' ')
    if (ref.slice(0, space) === this.#deps.processName) return
    const routeId = ref.slice(space + 1)
    if (kind === closedKind) {
      this.#circuits.closedElsewhere(routeId)
      return
    }
    // Two processes can notice the same failure concurrently. In that case the second report is not a new opening.
    const isNew = this.#circuits.available(routeId)
    this.#circuits.openedElsewhere(routeId, epoch ?? 0)
    if (isNew) this.#deps.opened?.(routeId)
  }
}
