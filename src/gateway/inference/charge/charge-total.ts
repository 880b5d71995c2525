import type { UsageEvent } from '../../usage/events/record.ts'
import type { CallWatch } from '../call-watch.ts'

/** Adds up the charges of several calls of one request, exactly in micro-rupees. */
export class ChargeTotal {
  #costUinr = 0n
  #valueUinr = 0n

  get costUinr(): bigint {
    return this.#costUinr
  }

  get valueUinr(): bigint {
    return this.#valueUinr
  }

  /** True when a call was charged, whatever the result of the request is. */
  get isCharged(): boolean {
    return this.#valueUinr > 0n
  }

  /** Returns a watch that adds the charges of settled calls, whatever their outcome, and passes every event on to `others`. */
  watching(others: CallWatch | undefined): CallWatch {
    return {
      settled: event => {
        this.#add(event)
        others?.settled(event)
      },
      routeFailed: (attempt, reason) => others?.routeFailed(attempt, reason),
      usageDoubted: (attempt, doubt) => others?.usageDoubted(attempt, doubt),
    }
  }

  #add({ costUinr, valueUinr }: UsageEvent): void {
    this.#costUinr += costUinr
    this.#valueUinr += valueUinr
  }
}
