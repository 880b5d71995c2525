import { BodyTooLargeError, type UpstreamBody } from '../../platform/upstream-body.ts'

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
    const parts: Uint8Array[] = []
    let bytes = 0
    try {
      for await (const part of body) {
        bytes += part.byteLength
        this.#leftBytes -= part.byteLength
        if (this.#leftBytes < 0) throw new BodyTooLargeError(`more than ${this.#maxBytes} bytes`)
        parts.push(part)
      }
      return Buffer.concat(parts, bytes)
    } catch (error) {
      body.destroy()
      this.giveBack(bytes)
      throw error
    }
  }

  /** What was read is not kept. */
  giveBack(bytes: number): void {
    this.#leftBytes += bytes
  }
}
