/** A larger piece goes on as it came. */
const smallMaxBytes = 1023
/** What small pieces are put together in. */
const roomBytes = 16 * 1024

/**
 * Puts small pieces together on their way to a reader that has a price for each. A large piece goes on without a copy, and so does the first.
 * Nothing that went on is written to again, so the reader may keep it.
 */
export class GatheredPieces {
  readonly #next: (bytes: Buffer) => void
  #room: Buffer | null = null
  #end = 0
  #isFirst = true

  constructor(next: (bytes: Buffer) => void) {
    this.#next = next
  }

  add(piece: Buffer): void {
    if (this.#isFirst || piece.length > smallMaxBytes) {
      this.#isFirst = false
      this.flush()
      this.#next(piece)
      return
    }
    if (this.#room !== null && roomBytes - this.#end < piece.length) this.flush()
    this.#room ??= Buffer.allocUnsafe(roomBytes)
    this.#room.set(piece, this.#end)
    this.#end += piece.length
  }

  /** What was put together so far goes on. */
  flush(): void {
    const room = this.#room
    if (room === null) return
    this.#room = null
    const end = this.#end
    this.#end = 0
    this.#next(room.subarray(0, end))
  }
}
