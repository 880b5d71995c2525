import { BodyPieces } from '../../../platform/loop/body-pieces.ts'
import { BodyTooLargeError, type UpstreamBody } from '../../../platform/outbound/upstream-body.ts'

/** Memory for replies that are read whole and side by side: they share one bound, however many they are. */
export class ReplyRoom {
  readonly #maxBytes: number
  #leftBytes: number

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
    this.#leftBytes = maxBytes
  }

  /** All of a body. Throws BodyTooLargeError when it does not fit beside the others; they keep what they have. */
  async read(body: UpstreamBody): Promise<Buffer> {
    const parts = new BodyPieces()
    try {
      for await (const part of body) {
        parts.add(part)
        this.#leftBytes -= part.byteLength
        if (this.#leftBytes < 0) throw new BodyTooLargeError(`more than ${this.#maxBytes} bytes`)
      }
      return parts.joined()
    } catch (error) {
      body.destroy()
      this.giveBack(parts.bytes)
      throw error
    }
  }

  /** What was read is not kept. */
  giveBack(bytes: number): void {
    this.#leftBytes += bytes
  }
}
