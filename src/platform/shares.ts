/** Why there is no place: all are taken, or all that its holder may have beside the others. */
export type NoPlace = 'total' | 'share'

/** Part of all places that only who holds none may take, in percent. */
const reservePercent = 10

/**
 * Places of one kind in one process. A holder may have a part of what the others leave free, so its share shrinks while they take more: with a part of
 * one half, holders that take all they can get have 1/2, 1/4, 1/8 of the places and so on. The last tenth is for holders without a place, so a new
 * holder always gets its first.
 */
export class Shares<Holder> {
  readonly total: number
  /** How often there was no place, by reason. */
  readonly refusals: Record<NoPlace, number> = { total: 0, share: 0 }
  readonly #percent: number
  readonly #shared: number
  readonly #byHolder = new Map<Holder, number>()
  #held = 0

  /** `percent` is the part of what the others leave free that one holder may have. */
  constructor(total: number, percent: number) {
    this.total = total
    this.#percent = Math.min(percent, 100)
    this.#shared = total - Math.floor((total * reservePercent) / 100)
  }

  /** Places that are taken. */
  get held(): number {
    return this.#held
  }

  of(holder: Holder): number {
    return this.#byHolder.get(holder) ?? 0
  }

  /** Takes a place and returns null; returns the reason when there is none. */
  take(holder: Holder): NoPlace | null {
    const own = this.of(holder)
    if (this.#held >= this.total) return this.#refuse('total')
    if (own > 0 && own >= this.#shareBeside(this.#held - own)) return this.#refuse('share')
    this.#set(holder, own + 1)
    this.#held++
    return null
  }

  /** Takes a place for a holder that has no share, only the bound of all. False: all are taken. */
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

  /** Moves a place from one holder to another and returns null. Returns the reason when the other holder may not have it; then the place stays. */
  move(from: Holder, to: Holder): NoPlace | null {
    if (from === to) return null
    const own = this.of(to)
    if (own > 0 && own >= this.#shareBeside(this.#held - 1 - own)) return this.#refuse('share')
    this.#set(from, this.of(from) - 1)
    this.#set(to, own + 1)
    return null
  }

  /** Hands a place from one holder to another, whatever the share of the other one is. */
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
