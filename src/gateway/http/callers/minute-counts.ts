/** Returns the seconds to the end of the clock minute, for `retry-after`. */
export const secondsLeftOf = (nowMs: number): number => Math.ceil((minuteMs - (nowMs % minuteMs)) / 1000)

const minuteMs = 60_000
/** Maximum number of names in one minute, which is a few megabytes. Above it, the name that was set longest ago is dropped. The project chose this number. */
const namesMax = 50_000

/**
 * Counts by name within a clock minute, in memory. The first access in a later minute deletes all counts, so no timer is needed. The number of names has a
 * bound.
 */
export class MinuteCounts {
  #minute = 0
  #counts = new Map<string, number>()

  /** Returns the count of a name in the minute of `nowMs`. */
  of(name: string, nowMs: number): number {
    this.#turnTo(nowMs)
    return this.#counts.get(name) ?? 0
  }

  /** Sets the count of a name. It deletes the name first, because a Map keeps the order of insertion and the name must become the newest. */
  set(name: string, count: number): void {
    this.#counts.delete(name)
    this.#counts.set(name, count)
    if (this.#counts.size <= namesMax) return
    for (const oldest of this.#counts.keys()) {
      this.#counts.delete(oldest)
      return
    }
  }

  #turnTo(nowMs: number): void {
    const minute = Math.floor(nowMs / minuteMs)
    if (minute === this.#minute) return
    this.#minute = minute
    this.#counts = new Map()
  }
}
