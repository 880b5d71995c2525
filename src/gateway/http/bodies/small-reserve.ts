/** Room that only small bodies may take, so that large bodies cannot block small ones. Decision 0465 says why. */

/** A body up to this size is small. */
export const smallBytes = 64 * 1024
/** The reserve is 1/16 of the room of all bodies, and at least `leastBytes`. Both numbers are the project's choice. */
const partOfRoom = 16
const leastBytes = 1024 * 1024
/**
 * One founder may use at most `founderPercent` of the bytes that others leave free. The last `newcomersPercent` are for founders that have no small body in
 * the reserve yet.
 */
const founderPercent = 50
const newcomersPercent = 10

/** The reserve of one process. A small body takes from it when the room of all bodies is full. */
export class SmallReserve {
  readonly totalBytes: number
  readonly #byFounder = new Map<string, number>()
  #bytes = 0

  constructor(roomBytes: number) {
    this.totalBytes = Math.max(leastBytes, Math.floor(roomBytes / partOfRoom))
  }

  /** Number of taken bytes. */
  get bytes(): number {
    return this.#bytes
  }

  /** Takes room for bytes of a small body. Returns false when there is none for this founder. */
  take(founder: string, bytes: number): boolean {
    const own = this.#byFounder.get(founder) ?? 0
    const shared = this.totalBytes * (1 - newcomersPercent / 100) - (this.#bytes - own)
    if (this.#bytes + bytes > this.totalBytes) return false
    if (own + bytes > Math.max(smallBytes, (shared * founderPercent) / 100)) return false
    this.#bytes += bytes
    this.#byFounder.set(founder, own + bytes)
    return true
  }

  /** Gives room back. */
  give(founder: string, bytes: number): void {
    this.#bytes -= bytes
    const left = (this.#byFounder.get(founder) ?? 0) - bytes
    if (left > 0) this.#byFounder.set(founder, left)
    else this.#byFounder.delete(founder)
  }
}
