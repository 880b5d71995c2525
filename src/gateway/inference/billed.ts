import { inrFromUinr, uinrFromInr } from '../../platform/money.ts'
import type { Bill } from '../wire/client-format.ts'
import type { Kind } from './kinds/kind.ts'

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

  /** The same kind; whole replies are added here as they come, which is when they are charged. */
  of(kind: Kind): Kind {
    return {
      ...kind,
      perform: async (attempt, context) => {
        const performed = await kind.perform(attempt, context)
        if ('answer' in performed && performed.answer.kind === 'whole') this.#add(context.bill(performed.answer.usage))
        return performed
      },
    }
  }

  #add({ cost_inr, value_inr }: Bill): void {
    this.#costUinr += uinrFromInr(cost_inr)
    this.#valueUinr += uinrFromInr(value_inr)
  }
}
