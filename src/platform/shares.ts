/** Why there is no place: all places are taken, or the holder's share is used up. */
export type NoPlace = 'total' | 'share'

/** Percentage of all places that is reserved for holders that have no place yet. */
const reservePercent = 10

/**
 * A limited number of places of one kind in one process. A holder may use a percentage of the places that others leave free, so its share shrinks when
 * others take more. With 50 percent, holders that take as many as they can get 1/2, 1/4, 1/8 of the places and so on. The last tenth is reserved for
 * holders without a place, so that a new holder nearly always gets one.
 */
export class Shares<Holder> {
  readonly total: number
  /** How often there was no place, by reason. */
  readonly refusals: Record<NoPlace, number> = { total: 0, share: 0 }
  readonly #percent: number
  readonly #shared: number
  readonly #byHolder = new Map<Holder, number>()
  #held = 0

  /** One holder may use at most `percent` of the places that others leave free. */
  constructor(total: number, percent: number) {
    this.total = total
    this.#percent = Math.min(percent, 100)
    this.#shared = total - Math.floor((total * reservePercent) / 100)
  }

  /** Number of taken places. */
  get held(): number {
    return this.#held
  }

  of(holder: Holder): number {
    return this.#byHolder.get(holder) ?? 0
  }

  /** Takes a place and returns null. Returns the reason when there is none. */
  take(holder: Holder): NoPlace | null {
    const own = this.of(holder)
    if (this.#held >= this.total) return this.#refuse('total')
    if (own > 0 && own >= this.#shareBeside(this.#held - own)) return this.#refuse('share')
    this.#set(holder, own + 1)
    this.#held++
    return null
  }

  /** Takes a place for a holder that only the total number of places limits. Returns false when all places are taken. */
  takeUnshared(holder: Holder): boolean {
    if (this.#held >= this.total) {
      this.#refuse('total')
      return false
    }
    this.#set(holder, this.of(holder) + 1)
    this.#held++
    return true
  }

  /** Gives a place back. */
  give(holder: Holder): void {
    this.#set(holder, this.of(holder) - 1)
    this.#held--
  }

  /** Moves a place from one holder to another and returns null. When the share of `to` is used up, returns the reason and moves nothing. */
  move(from: Holder, to: Holder): NoPlace | null {
    if (from === to) return null
    const own = this.of(to)
    if (own > 0 && own >= this.#shareBeside(this.#held - 1 - own)) return this.#refuse('share')
    this.#set(from, this.of(from) - 1)
    this.#set(to, own + 1)
    return null
  }

  /** Moves a place from one holder to another without a check of the share of `to`. */
  hand(from: Holder, to: Holder): void {
    if (from === to) return
    this.#set(from, this.of(from) - 1)
    this.#set(to, this.of(to) + 1)
  }

  #shareBeside(others: number): number {
    return Math.max(1, Math.floor(((this.#shared - others) * this.#percent) / 100))
  }

  #set(holder: Holder, count: number): void {
    if (count > 0) this.#byHolder.set(holder, count)
    else this.#byHolder.delete(holder)
  }

  #refuse(why: NoPlace): NoPlace {
    this.refusals[why]++
    return why
  }
}
