/** Least room that is made. */
const roomMinBytes = 1024

/** Bytes that come in pieces, put together as they come: however small the pieces are, it takes time and memory by the bytes alone. */
export class GrowingBytes {
  #room: Buffer | null = null
  #length = 0

  get length(): number {
    return this.#length
  }

  /** Bytes that it takes in memory, with the room for more. */
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

  /** All of it; the next piece starts a new one. */
  take(): Buffer {
    const taken = this.#room === null ? Buffer.alloc(0) : this.#room.subarray(0, this.#length)
    this.#room = null
    this.#length = 0
    return taken
  }
}
