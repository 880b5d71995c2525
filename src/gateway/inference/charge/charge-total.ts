import { inrFromUinr } from '../../../platform/values/money.ts'
import type { UsageEvent } from '../../usage/events/record.ts'
import type { CallWatch } from '../call-watch.ts'

/** Adds up what several calls of one request are charged. Exact: in micro-rupees. */
export class ChargeTotal {
  #costUinr = 0n
  #valueUinr = 0n

  get costInr(): number {
    return inrFromUinr(this.#costUinr)
  }

  get valueInr(): number {
    return inrFromUinr(this.#valueUinr)
  }

  /** True: something is charged, whatever becomes of the request. */
  get isCharged(): boolean {
    return this.#valueUinr > 0n
  }

  /** A watch that adds what calls are settled with, however they end, and tells `others`. */
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
