/** Seconds to the end of the clock minute, for `retry-after`. */
export const secondsLeftOf = (nowMs: number): number => Math.ceil((minuteMs - (nowMs % minuteMs)) / 1000)

const minuteMs = 60_000
/** Names counted in one minute; the one not seen for longest is forgotten first. Ours: a few megabytes at most. */
const namesMax = 50_000

/** Counts by name within a clock minute, in memory. They go when a later minute begins, so there is no timer, and their number has a bound. */
export class MinuteCounts {
  #minute = 0
  #counts = new Map<string, number>()

  /** The count of a name in the minute of `nowMs`. */
  of(name: string, nowMs: number): number {
    this.#turnTo(nowMs)
    return this.#counts.get(name) ?? 0
  }

  /** A Map keeps the order of insertion: taken out and put in again, the newest is the last. */
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
