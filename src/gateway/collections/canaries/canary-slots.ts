interface Waiting {
  readonly orgId: number
  go(): void
}

/**
 * Bounds the concurrent canaries in this process, and how many of them belong to one organisation: an organisation whose servers hang must not block the
 * others. A canary without room waits in line.
 */
export class CanarySlots {
  #free: number
  readonly #orgMax: number
  /** Under way by organisation. */
  readonly #running = new Map<number, number>()
  readonly #waiting: Waiting[] = []

  constructor(count: number, orgMax: number) {
    this.#free = count
    this.#orgMax = orgMax
  }

  async run<T>(orgId: number, work: () => Promise<T>): Promise<T> {
    if (this.#hasRoom(orgId)) this.#enter(orgId)
    else await new Promise<void>(go => this.#waiting.push({ orgId, go }))
    try {
      return await work()
    } finally {
      this.#leave(orgId)
    }
  }

  #hasRoom(orgId: number): boolean {
    return this.#free > 0 && (this.#running.get(orgId) ?? 0) < this.#orgMax
  }

  #enter(orgId: number): void {
    this.#free--
    this.#running.set(orgId, (this.#running.get(orgId) ?? 0) + 1)
  }

  /** The first in line whose organisation has room goes next. */
  #leave(orgId: number): void {
    this.#free++
    const left = (this.#running.get(orgId) ?? 1) - 1
    if (left === 0) this.#running.delete(orgId)
    else this.#running.set(orgId, left)
    const next = this.#waiting.findIndex(waiting => this.#hasRoom(waiting.orgId))
    if (next === -1) return
    const [waiting] = this.#waiting.splice(next, 1)
    if (waiting === undefined) return
    this.#enter(waiting.orgId)
    waiting.go()
  }
}
