/**
 * Counts the running delivery attempts of one process for each endpoint, so that slow receivers do not delay fast ones. Decision 0297 gives
 * the reasons.
 */
import type { Clock } from '../../../platform/clock.ts'

/** Maximum number of concurrent attempts at fast endpoints. Slow endpoints have the same maximum. */
const placesDefault = 256
/** The maximum for all attempts together is this many times the maximum above. It includes attempts at endpoints that became slow during the attempt. */
const allFactor = 4
/** Maximum number of slow endpoints that are remembered. When a slow endpoint is forgotten, it is detected again. */
const slowMax = 10_000

interface Attempt {
  readonly endpointId: number
  readonly begunMs: number
  isAnswered: boolean
}

/** The slot of a running delivery attempt. */
export interface DeliverySlot {
  /** Call this when the receiver has replied, or when it is clear that no reply will come. */
  answered(): void
  /** Frees the slot. */
  leave(): void
}

/** Endpoints from which one claim may take deliveries, and how many. */
export interface FreeSlots {
  readonly endpointIds: readonly number[]
  readonly perEndpoint: number
  readonly limit: number
}

/**
 * Gives slots to delivery attempts. An endpoint is slow when its last attempt in this process took longer than `slowMs`, or when a running attempt
 * has already taken longer. Slow endpoints and fast endpoints have separate slots. When more than half of the slots for slow endpoints are in use, no
 * slow endpoint gets a second slot. The same rule applies to fast endpoints.
 */
export class DeliverySlots {
  readonly #clock: Clock
  readonly #slowMs: number
  readonly #places: number
  readonly #attempts = new Set<Attempt>()
  readonly #slow = new Set<number>()

  constructor({ clock, slowMs, places = placesDefault }: { readonly clock: Clock; readonly slowMs: number; readonly places?: number | undefined }) {
    this.#clock = clock
    this.#slowMs = slowMs
    this.#places = places
  }

  take(endpointId: number): DeliverySlot {
    const attempt: Attempt = { endpointId, begunMs: this.#clock.monotonicMs(), isAnswered: false }
    this.#attempts.add(attempt)
    return {
      answered: () => {
        if (this.#tookLong(attempt)) this.#slow.add(endpointId)
        else this.#slow.delete(endpointId)
        attempt.isAnswered = true
      },
      leave: () => this.#attempts.delete(attempt),
    }
  }

  /** Updates which endpoints are slow. Call it before `isFull`, `leftOut` and `roomsFor`. */
  learn(): void {
    if (this.#slow.size > slowMax) this.#slow.clear()
    for (const attempt of this.#attempts) if (!attempt.isAnswered && this.#tookLong(attempt)) this.#slow.add(attempt.endpointId)
  }

  get isFull(): boolean {
    return this.#free(true) <= 0 && this.#free(false) <= 0
  }

  /** Returns endpoints for which no slot is free now. */
  leftOut(): number[] {
    const left = new Set(this.#free(true) <= 0 ? this.#slow : [])
    const [quickCrowded, slowCrowded] = [this.#isCrowded(false), this.#isCrowded(true)]
    for (const { endpointId } of this.#attempts) if (this.#slow.has(endpointId) ? slowCrowded : quickCrowded) left.add(endpointId)
    return [...left]
  }

  /** Returns what may be claimed from these endpoints: first from fast ones, then from slow ones. `perEndpoint` limits the claims from one endpoint. */
  roomsFor(endpointIds: readonly number[], perEndpoint: number): FreeSlots[] {
    return [false, true]
      .map(isSlow => ({
        endpointIds: endpointIds.filter(id => this.#slow.has(id) === isSlow),
        perEndpoint: this.#isCrowded(isSlow) ? 1 : perEndpoint,
        limit: this.#free(isSlow),
      }))
      .filter(room => room.endpointIds.length > 0 && room.limit > 0)
  }

  #tookLong({ begunMs }: Attempt): boolean {
    return this.#clock.monotonicMs() - begunMs > this.#slowMs
  }

  #isCrowded(isSlow: boolean): boolean {
    return this.#free(isSlow) <= this.#places / 2
  }

  #free(isSlow: boolean): number {
    let taken = 0
    for (const { endpointId } of this.#attempts) if (this.#slow.has(endpointId) === isSlow) taken++
    return Math.min(this.#places - taken, this.#places * allFactor - this.#attempts.size)
  }
}
