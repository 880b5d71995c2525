/**
 * The tokens of one call in its limits of tokens a minute. The hold belongs to the minute of admission. What the call uses beyond it belongs to the minute in
 * which it is used, also above the limit: a rate never cuts a call. Decision 0817 gives the reasons.
 */
import type { Counter } from './counter-state.ts'

/** Returns the counter of the same limit in the minute that runs now. */
export type CounterNow = (counter: Counter) => Counter

interface Part {
  /** The place of the counter in the permit. */
  readonly index: number
  readonly first: Counter
  readonly held: bigint
  /** The counter to which the call has added tokens last, and how many of them. */
  last: Counter | null
  addedToLast: bigint
  /** The tokens that the call has added in all minutes. */
  added: bigint
}

/** Follows the tokens of a call. It asks nobody and makes no timer. */
export class TokenUse {
  readonly #parts: readonly Part[]
  readonly #now: CounterNow

  constructor(counters: readonly Counter[], amounts: readonly bigint[], now: CounterNow) {
    this.#now = now
    this.#parts = counters.flatMap((first, index) =>
      first.metric === 'tpm' ? [{ index, first, held: amounts[index] ?? 0n, last: null, addedToLast: 0n, added: 0n }] : [],
    )
  }

  /** Adds the tokens beyond the hold to the minute that runs now. `total` are the tokens of the whole call. */
  extendTo(total: bigint): void {
    for (const part of this.#parts) this.#add(part, total - part.held - part.added)
  }

  /**
   * Ends the call with its tokens. More than it has held and added goes to the minute that runs now. Less goes back as far as its minute still runs. Returns
   * the tokens that count in each hold, by the place of the counter.
   */
  end(total: bigint, nowMs: number): ReadonlyMap<number, bigint> {
    return new Map(
      this.#parts.map(part => {
        const { index, first, held } = part
        let unused = held + part.added - total
        if (unused < 0n) this.#add(part, -unused)
        else if (part.last !== null && nowMs < part.last.endsAtMs) {
          const back = unused < part.addedToLast ? unused : part.addedToLast
          part.last.takeBack(back)
          unused -= back
        }
        const back = unused > 0n && nowMs < first.endsAtMs ? (unused < held ? unused : held) : 0n
        first.knownSpent += held - back
        return [index, held - back]
      }),
    )
  }

  #add(part: Part, tokens: bigint): void {
    if (tokens <= 0n) return
    const counter = this.#now(part.first)
    counter.add(tokens)
    part.addedToLast = counter === part.last ? part.addedToLast + tokens : tokens
    part.last = counter
    part.added += tokens
  }
}
