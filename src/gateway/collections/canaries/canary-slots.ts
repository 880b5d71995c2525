/**
 * Limits the canaries that run concurrently in this process, in total and for the organisations of one founder. So hanging servers of one founder do
 * not block others. A canary without a free slot waits. The next free slot goes to the waiting founder with the fewest running canaries.
 */
export class CanarySlots {
  #free: number
  readonly #holderMax: number
  /** Number of running canaries by founder. */
  readonly #running = new Map<number, number>()
  /** Waiting canaries by founder. The founder who has waited longest for a slot comes first. */
  readonly #waiting = new Map<number, (() => void)[]>()

  constructor(count: number, holderMax: number) {
    this.#free = count
    this.#holderMax = holderMax
  }

  /** Runs the work when a slot is free. `holder` is the number of a founder. */
  async run<T>(holder: number, work: () => Promise<T>): Promise<T> {
    if (this.#hasRoom(holder)) this.#enter(holder)
    else await new Promise<void>(go => this.#wait(holder, go))
    try {
      return await work()
    } finally {
      this.#leave(holder)
    }
  }

  #hasRoom(holder: number): boolean {
    return this.#free > 0 && this.#runningOf(holder) < this.#holderMax
  }

  #runningOf(holder: number): number {
    return this.#running.get(holder) ?? 0
  }

  #enter(holder: number): void {
    this.#free--
    this.#running.set(holder, this.#runningOf(holder) + 1)
  }

  #wait(holder: number, go: () => void): void {
    const line = this.#waiting.get(holder)
    if (line === undefined) this.#waiting.set(holder, [go])
    else line.push(go)
  }

  #leave(holder: number): void {
    this.#free++
    const left = this.#runningOf(holder) - 1
    if (left === 0) this.#running.delete(holder)
    else this.#running.set(holder, left)
    const next = this.#next()
    if (next === null) return
    const line = this.#waiting.get(next) ?? []
    const go = line.shift()
    this.#waiting.delete(next)
    if (line.length > 0) this.#waiting.set(next, line)
    this.#enter(next)
    go?.()
  }

  /** Returns the waiting founder who is below the founder's limit and has the fewest running canaries. Returns null when there is no such founder. */
  #next(): number | null {
    let next: number | null = null
    for (const holder of this.#waiting.keys()) if (this.#hasRoom(holder) && (next === null || this.#runningOf(holder) < this.#runningOf(next))) next = holder
    return next
  }
}
