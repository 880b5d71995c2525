/**
 * Random numbers that depend only on a seed, so that the demonstration has the same figures in every run. They decide nothing that must be secret.
 */
export interface Seeded {
  /** Returns a number in [0, 1). */
  next(): number
  /** Returns a whole number from `least` to `most`. */
  whole(least: number, most: number): number
  /** Returns one of the items, each as probable as its weight. */
  pick<T>(items: readonly T[], weightOf?: (item: T) => number): T
  /** Returns a number around `middle`. It is never negative, and has a long tail as real sizes and times have. */
  around(middle: number, spread: number): number
}

/** Makes a generator (mulberry32, by Tommy Ettinger, in the public domain). */
export function seeded(seed: number): Seeded {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  return {
    next,
    whole: (least, most) => least + Math.floor(next() * (most - least + 1)),
    pick(items, weightOf = () => 1) {
      let rest = next() * items.reduce((sum, item) => sum + weightOf(item), 0)
      for (const item of items) {
        rest -= weightOf(item)
        if (rest < 0) return item
      }
      const last = items.at(-1)
      if (last === undefined) throw new Error('there is nothing to pick from')
      return last
    },
    // The logarithm of the number has a normal distribution (Box and Muller).
    around: (middle, spread) => middle * Math.exp(spread * Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next())),
  }
}
