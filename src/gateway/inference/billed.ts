import { inrFromUinr, uinrFromInr } from '../../platform/money.ts'
import type { Bill } from '../wire/client-format.ts'
import type { Kind } from './kinds/kind.ts'
import { abandonedUsage } from './meter.ts'

/** Adds up what several calls of one request are charged. Exact: in micro-rupees. */
export class Bills {
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

  /** The same kind; what is charged is added here as it comes: whole replies, and work that is left while a provider is at it. */
  of(kind: Kind): Kind {
    return {
      ...kind,
      perform: async (attempt, context) => {
        try {
          const performed = await kind.perform(attempt, context)
          if ('answer' in performed && performed.answer.kind === 'whole') this.#add(context.bill(performed.answer.usage))
          return performed
        } catch (error) {
          if (context.signal.aborted) this.#add(context.bill(abandonedUsage(context.request)))
          throw error
        }
      },
    }
  }

  #add({ cost_inr, value_inr }: Bill): void {
    this.#costUinr += uinrFromInr(cost_inr)
    this.#valueUinr += uinrFromInr(value_inr)
  }
}
