/**
 * Counts the running delivery attempts of one process for each endpoint, so that slow receivers do not delay fast ones.
 * Decision 0297 says why.
 */
import type { Clock } from '../../../platform/clock.ts'

/** The most concurrent attempts at fast endpoints, and the same number at slow ones. */
const placesDefault = 256
/** The factor for all attempts together, including those at endpoints that became slow only now. */
const allFactor = 4
/** The most slow endpoints that are remembered. A forgotten one is detected again. */
const slowMax = 10_000

interface Attempt {
  readonly endpointId: number
  readonly begunMs: number
  isAnswered: boolean
}

/** A running delivery attempt. */
export interface DeliverySlot {
  /** The receiver has answered, or will not any more. */
  answered(): void
  /** Somebody else may have the place. */
  leave(): void
}

/** Endpoints that may be claimed from together. */
export interface FreeSlots {
  readonly endpointIds: readonly number[]
  readonly perEndpoint: number
  readonly limit: number
}

/**
 * An endpoint whose last attempt here took longer than `slowMs`, or one of whose attempts does now, is slow. Slow ones share places of
 * their own. Where more than half of a kind's places are taken, no endpoint of that kind gets a second one.
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

  /** To be called before every look at the numbers below. */
  learn(): void {
    if (this.#slow.size > slowMax) this.#slow.clear()
    for (const attempt of this.#attempts) if (!attempt.isAnswered && this.#tookLong(attempt)) this.#slow.add(attempt.endpointId)
  }

  get isFull(): boolean {
    return this.#free(true) <= 0 && this.#free(false) <= 0
  }

  /** Endpoints for which there is no place now. */
  leftOut(): number[] {
    const left = new Set(this.#free(true) <= 0 ? this.#slow : [])
    const [quickCrowded, slowCrowded] = [this.#isCrowded(false), this.#isCrowded(true)]
    for (const { endpointId } of this.#attempts) if (this.#slow.has(endpointId) ? slowCrowded : quickCrowded) left.add(endpointId)
    return [...left]
  }

  /** How much of these endpoints may be claimed, at most `perEndpoint` of each: first of quick ones, then of slow ones. */
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
