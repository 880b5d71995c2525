/** Circuits that open or close here are news to the other processes. Only changes are told, never on the way of a call. */
import type { Clock } from '../../../platform/clock.ts'
import type { ControlLog, News, NewsItem } from '../../../platform/db/db-control-log.ts'
import type { Log } from '../../../platform/observe/log.ts'
import type { RouteId } from '../../catalog/model.ts'
import type { CircuitChange, Circuits } from './circuit.ts'

/** What news are taken into, and read from. */
export type ToldCircuits = Pick<Circuits, 'available' | 'remainingMs' | 'openedElsewhere' | 'closedElsewhere'>

const openedKind = 'circuit_opened'
const closedKind = 'circuit_closed'
/** After a failed write, how long until the next one. */
const retryMs = 2_000

export interface CircuitNewsDeps {
  readonly clock: Clock
  readonly log: Log
  readonly controlLog: Pick<ControlLog, 'on' | 'change'>
  /** Tells this process's own news from those of others. */
  readonly processName: string
  /** Called when another process tells of an opening that was not known here. */
  opened?(routeId: RouteId): void
}

/**
 * Tells other processes what the dials of this one did to circuits, and takes in what they tell. A circuit that goes to and fro while the
 * database is away is told once, in its state of then; one that has closed by itself meanwhile is not told at all.
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

  /** Returns immediately; the write goes on in the background. */
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
        // What has changed again meanwhile is newer than what could not be told.
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

  /** The number beside the news is how long the circuit stays open, so that no two clocks are compared. */
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
    // Two processes that find out at the same time tell of one opening.
    const isNew = this.#circuits.available(routeId)
    this.#circuits.openedElsewhere(routeId, epoch ?? 0)
    if (isNew) this.#deps.opened?.(routeId)
  }
}
