/** The smallest buffer that is allocated. */
const roomMinBytes = 1024

/** Joins bytes that come in pieces. Time and memory depend only on the number of bytes, not on the number of pieces. */
export class GrowingBytes {
  #room: Buffer | null = null
  #length = 0

  get length(): number {
    return this.#length
  }

  /** The size of the buffer in memory, including the spare room. */
  get roomBytes(): number {
    return this.#room?.length ?? 0
  }

  append(part: Uint8Array): void {
    const length = this.#length + part.length
    let room = this.#room
    if (room === null || room.length < length) {
      room = Buffer.allocUnsafe(Math.max(roomMinBytes, length * 2))
      if (this.#room !== null) room.set(this.#room.subarray(0, this.#length))
      this.#room = room
    }
    room.set(part, this.#length)
    this.#length = length
  }

  /** Drops the bytes after an offset. */
  truncate(length: number): void {
    this.#length = Math.min(this.#length, length)
  }

  /** Returns all of the bytes. The next piece starts a new buffer. */
  take(): Buffer {
    const taken = this.#room === null ? Buffer.alloc(0) : this.#room.subarray(0, this.#length)
    this.#room = null
    this.#length = 0
    return taken
  }
}
