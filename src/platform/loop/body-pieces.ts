/** A larger piece is kept as it came. */
const smallMaxBytes = 1023
/** Bounds of the room that small pieces share. */
const roomMinBytes = 1024
const roomMaxBytes = 64 * 1024

/**
 * A body that comes in pieces. A large piece is kept without a copy, and so is the only one. Small ones are put together, because each
 * buffer has a price of its own: a body that came byte by byte would take two hundred times its length.
 */
export class BodyPieces {
  #pieces: Uint8Array[] = []
  #bytes = 0
  /** Where small pieces go: `#begin` to `#end` are in none of the pieces yet. */
  #room: Buffer | null = null
  #begin = 0
  #end = 0

  get bytes(): number {
    return this.#bytes
  }

  add(piece: Uint8Array): void {
    if (piece.length === 0) return
    if (piece.length > smallMaxBytes || this.#bytes === 0) {
      this.#close()
      this.#pieces.push(piece)
    } else this.#copy(piece)
    this.#bytes += piece.length
  }

  /** All of it. */
  joined(): Buffer {
    this.#close()
    const [only] = this.#pieces
    return this.#pieces.length === 1 && Buffer.isBuffer(only) ? only : Buffer.concat(this.#pieces, this.#bytes)
  }

  /** Lets go of what came. */
  drop(): void {
    this.#pieces = []
    this.#room = null
    this.#bytes = this.#begin = this.#end = 0
  }

  #copy(piece: Uint8Array): void {
    let room = this.#room
    if (room === null || room.length - this.#end < piece.length) {
      this.#close()
      // It grows with the body, so that a short one takes little.
      room = Buffer.allocUnsafe(Math.min(roomMaxBytes, Math.max(roomMinBytes, this.#bytes)))
      this.#room = room
      this.#begin = this.#end = 0
    }
    room.set(piece, this.#end)
    this.#end += piece.length
  }

  /** Joins the small pieces so far; the rest of the room takes the next ones. */
  #close(): void {
    if (this.#room === null || this.#begin === this.#end) return
    this.#pieces.push(this.#room.subarray(this.#begin, this.#end))
    this.#begin = this.#end
  }
}
