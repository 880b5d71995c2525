import { inrFromUinr, uinrFromInr } from '../../platform/money.ts'
import type { Bill } from '../wire/client-format.ts'
import type { WholeAnswer } from './answer.ts'
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

  /** The same kind; whole replies are added here when they have been settled, which is when their body is asked for. */
  of(kind: Kind): Kind {
    const noted = (answer: WholeAnswer): WholeAnswer => ({
      ...answer,
      body: (usage, billOf) => {
        this.#add(billOf(usage))
        return answer.body(usage, billOf)
      },
    })
    return {
      ...kind,
      async perform(attempt, context) {
        const performed = await kind.perform(attempt, context)
        return 'answer' in performed && performed.answer.kind === 'whole' ? { ...performed, answer: noted(performed.answer) } : performed
      },
    }
  }

  #add({ cost_inr, value_inr }: Bill): void {
    this.#costUinr += uinrFromInr(cost_inr)
    this.#valueUinr += uinrFromInr(value_inr)
  }
}
