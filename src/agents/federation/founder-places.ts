import { Shares } from '../../platform/shares.ts'

interface Entry<Value> {
  readonly founder: string
  readonly value: Value
}

/**
 * A cache with a maximum number of entries, which are divided by founder. An entry belongs to the founder that added it. A founder beyond its share
 * loses its own least recently used entry. When all places are taken, the founder with the most entries loses one. Decision 0642 gives the reasons.
 */
export class FounderPlaces<Value> {
  /** The entries, the least recently used one first. */
  readonly #entries = new Map<string, Entry<Value>>()
  readonly #shares: Shares<string>

  /** One founder may use at most `percent` of the places that others leave free. */
  constructor(total: number, percent: number) {
    this.#shares = new Shares(total, percent)
  }

  get(key: string): Value | undefined {
    const entry = this.#entries.get(key)
    if (entry === undefined) return undefined
    this.#entries.delete(key)
    this.#entries.set(key, entry)
    return entry.value
  }

  /** Adds an entry. The key must not be in the cache. */
  add(key: string, founder: string, value: Value): void {
    for (let noPlace = this.#shares.take(founder); noPlace !== null; noPlace = this.#shares.take(founder))
      this.#dropOldestOf(noPlace === 'share' ? founder : this.#largest())
    this.#entries.set(key, { founder, value })
  }

  #dropOldestOf(founder: string): void {
    for (const [key, entry] of this.#entries) {
      if (entry.founder !== founder) continue
      this.#entries.delete(key)
      this.#shares.give(founder)
      return
    }
  }

  #largest(): string {
    let largest = ''
    for (const { founder } of this.#entries.values()) if (largest === '' || this.#shares.of(founder) > this.#shares.of(largest)) largest = founder
    return largest
  }
}
