import type { RoomOfReply } from '../../../platform/outbound/held-replies.ts'
import { BodyTooLargeError, type UpstreamBody } from '../../../platform/outbound/upstream-body.ts'

/** The memory for replies of one call that are read whole and concurrently. All of them share one bound, whatever their number. */
export class ReplyRoom {
  readonly #maxBytes: number
  readonly #room: RoomOfReply
  #leftBytes: number

  /** `room` is the room that the call has in this process. */
  constructor(maxBytes: number, room: RoomOfReply) {
    this.#maxBytes = maxBytes
    this.#room = room
    this.#leftBytes = maxBytes
  }

  /** The bytes of the replies that were read and are kept. */
  get keptBytes(): number {
    return this.#maxBytes - this.#leftBytes
  }

  /** Returns the whole body. Throws `BodyTooLargeError` when the body does not fit beside the call's other replies, which keep their room. */
  async read(body: UpstreamBody): Promise<Buffer> {
    let takenBytes = 0
    const take = (bytes: number): boolean => {
      if (bytes > this.#leftBytes) throw new BodyTooLargeError(`more than ${this.#maxBytes} bytes`)
      if (!this.#room.take(bytes)) return false
      this.#leftBytes -= bytes
      takenBytes += bytes
      return true
    }
    try {
      return await body.buffer(this.#maxBytes, { take, whenFree: wake => this.#room.whenFree(wake) })
    } catch (error) {
      this.giveBack(takenBytes)
      body.destroy()
      throw error
    }
  }

  /** Frees the room of a reply that was read and is not kept. */
  giveBack(bytes: number): void {
    this.#leftBytes += bytes
    this.#room.take(-bytes)
  }
}
