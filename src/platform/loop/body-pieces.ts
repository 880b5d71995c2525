/** Maximum size of a small piece. Larger pieces are kept without a copy. */
const smallMaxBytes = 1023
/** Minimum size of the buffer that small pieces share. The next constant is its maximum. */
const roomMinBytes = 1024
const roomMaxBytes = 64 * 1024

/**
 * Collects a body that arrives in pieces. Large pieces and the first piece are kept without a copy. Small pieces are copied into a shared buffer, because
 * each buffer has overhead. Without this, a body that arrives byte by byte would use two hundred times its length.
 */
export class BodyPieces {
  #pieces: Uint8Array[] = []
  #bytes = 0
  /** The buffer for small pieces. The bytes from `#begin` to `#end` are not in `#pieces` yet. */
  #room: Buffer | null = null
  #begin = 0
  #end = 0

  get bytes(): number {
    return this.#bytes
  }

  add(piece: Uint8Array): void {
    if (piece.length === 0) return
    if (this.#bytes === 0 || (piece.length > smallMaxBytes && !keepsMuchMore(piece))) {
      this.#close()
      this.#pieces.push(piece)
    } else this.#copy(piece)
    this.#bytes += piece.length
  }

  /** Returns the whole body. */
  joined(): Buffer {
    this.#close()
    const [only] = this.#pieces
    return this.#pieces.length === 1 && Buffer.isBuffer(only) ? only : Buffer.concat(this.#pieces, this.#bytes)
  }

  /** Drops everything that was collected. */
  drop(): void {
    this.#pieces = []
    this.#room = null
    this.#bytes = this.#begin = this.#end = 0
  }

  #copy(piece: Uint8Array): void {
    let room = this.#room
    if (room === null || room.length - this.#end < piece.length) {
      this.#close()
      // The buffer grows with the body, so that a short body uses little memory.
      room = Buffer.allocUnsafe(Math.max(piece.length, Math.min(roomMaxBytes, Math.max(roomMinBytes, this.#bytes))))
      this.#room = room
      this.#begin = this.#end = 0
    }
    room.set(piece, this.#end)
    this.#end += piece.length
  }

  /** Adds the collected small pieces to `#pieces`. The rest of the buffer is used for the next ones. */
  #close(): void {
    if (this.#room === null || this.#begin === this.#end) return
    this.#pieces.push(this.#room.subarray(this.#begin, this.#end))
    this.#begin = this.#end
  }
}

/** A longer piece is never copied. */
const copiedMaxBytes = 16 * 1024

/** Returns true for a piece that keeps far more memory than its bytes: a sender can put any number of bytes between two pieces that no reader gets. */
export const keepsMuchMore = ({ length, buffer }: Uint8Array): boolean => length <= copiedMaxBytes && buffer.byteLength > 4 * length
