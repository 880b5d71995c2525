interface Waiting {
  readonly holder: number
  go(): void
}

/**
 * Bounds how many canaries run concurrently in this process, and how many of them are of one founder's organisations: servers that hang must not
 * keep the others from theirs. A round that finds no room waits in line.
 */
export class CanarySlots {
  #free: number
  readonly #holderMax: number
  /** Running canaries by founder. */
  readonly #running = new Map<number, number>()
  readonly #waiting: Waiting[] = []

  constructor(count: number, holderMax: number) {
    this.#free = count
    this.#holderMax = holderMax
  }

  /** Does the work when there is room. `holder` is the number of a founder. */
  async run<T>(holder: number, work: () => Promise<T>): Promise<T> {
    if (this.#hasRoom(holder)) this.#enter(holder)
    else await new Promise<void>(go => this.#waiting.push({ holder, go }))
    try {
      return await work()
    } finally {
      this.#leave(holder)
    }
  }

  #hasRoom(holder: number): boolean {
    return this.#free > 0 && (this.#running.get(holder) ?? 0) < this.#holderMax
  }

  #enter(holder: number): void {
    this.#free--
    this.#running.set(holder, (this.#running.get(holder) ?? 0) + 1)
  }

  /** The first in line whose founder has room goes next. */
  #leave(holder: number): void {
    this.#free++
    const left = (this.#running.get(holder) ?? 1) - 1
    if (left === 0) this.#running.delete(holder)
    else this.#running.set(holder, left)
    const next = this.#waiting.findIndex(waiting => this.#hasRoom(waiting.holder))
    if (next === -1) return
    const [waiting] = this.#waiting.splice(next, 1)
    if (waiting === undefined) return
    this.#enter(waiting.holder)
    waiting.go()
  }
}
