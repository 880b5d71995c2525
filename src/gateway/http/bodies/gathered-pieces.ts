/** Pieces up to this size are gathered; larger ones are passed on unchanged. */
const smallMaxBytes = 1023
/** Size of the buffer in which small pieces are gathered. */
const roomBytes = 16 * 1024

/**
 * Joins small pieces of a body, because the parser that reads them has a cost for each piece. The first piece and every large piece are passed on without a
 * copy. The reader may keep what it receives, because no passed buffer is written to again.
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

  /** Passes on the pieces that have been gathered so far. */
  flush(): void {
    const room = this.#room
    if (room === null) return
    this.#room = null
    const end = this.#end
    this.#end = 0
    this.#next(room.subarray(0, end))
  }

  /** Forgets the pieces that have been gathered so far. */
  drop(): void {
    this.#room = null
    this.#end = 0
  }
}
