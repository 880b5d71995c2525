import type { ServerResponse } from 'node:http'
import type { StreamSink } from '../../../platform/loop/stream-sink.ts'
import type { UnreadReplies, UnreadReply } from '../unread-replies.ts'

/** When this number of bytes waits for the end of the turn, they are written immediately. */
const writtenAtBytes = 16 * 1024
const crlf = '\r\n'
/** The chunk of HTTP that ends a body. */
const lastChunk = '0\r\n\r\n'

/**
 * The client of a streamed reply. The chunks of one turn of the event loop go out in one write and one chunk of HTTP. The sink writes the chunks of HTTP
 * itself, because Node.js makes four writes for each. Decision 0536 says why.
 */
export class ResponseSink implements StreamSink {
  isGone: boolean
  /** The ticks since the last bytes. */
  silentTicks = 0
  readonly #response: ServerResponse
  readonly #orgId: number | null
  readonly #unread: UnreadReplies
  /** False for a client of HTTP/1.0, whose connection ends with the reply. */
  readonly #isFramed: boolean
  #parts: Uint8Array[] = []
  #bytes = 0
  #isScheduled = false
  /** The bytes that the network has not taken. */
  #waiting: UnreadReply | null = null
  #wake = (): void => {}
  // The whole stream has one listener for each event. One listener per wait would accumulate while the stream lasts.
  readonly #onDrain = (): void => this.#drained()
  readonly #onClose = (): void => {
    this.isGone = true
    this.#drained()
  }

  /** The head of the reply is written before. */
  constructor(response: ServerResponse, orgId: number | null, unread: UnreadReplies) {
    this.isGone = response.destroyed
    this.#response = response
    this.#orgId = orgId
    this.#unread = unread
    this.#isFramed = response.chunkedEncoding
    response.chunkedEncoding = false
    response.once('close', this.#onClose)
    response.on('drain', this.#onDrain)
  }

  /** True when the client does not read what it has. */
  get isFull(): boolean {
    return this.#waiting !== null
  }

  push(bytes: Uint8Array): boolean {
    if (this.isGone) return false
    this.silentTicks = 0
    if (bytes.length === 0) return !this.isFull
    this.#parts.push(bytes)
    this.#bytes += bytes.length
    if (this.#bytes >= writtenAtBytes) this.#write()
    else if (!this.#isScheduled) {
      this.#isScheduled = true
      process.nextTick(this.#flush)
    }
    return !this.isFull
  }

  room(): Promise<void> {
    return new Promise(resolve => {
      if (this.isGone || !this.isFull) resolve()
      else this.#wake = resolve
    })
  }

  /** Sends the head immediately when no bytes follow it. */
  start(): void {
    if (this.#bytes === 0) this.#response.flushHeaders()
  }

  /** Ends the reply after its last bytes. */
  async end(): Promise<void> {
    if (this.isFull) await this.room()
    if (this.isGone || this.#response.destroyed) return
    this.#response.end(this.#taken(true))
    // A client that does not read the last bytes is cut like one that stops reading earlier.
    if (this.#response.writableLength > 0) this.#unread.closeWhenSent(this.#response, this.#orgId)
  }

  close(): void {
    this.#response.off('close', this.#onClose)
    this.#response.off('drain', this.#onDrain)
    this.#drained()
  }

  readonly #flush = (): void => {
    this.#isScheduled = false
    if (this.#bytes > 0) this.#write()
  }

  #write(): void {
    const response = this.#response
    const bytes = this.#taken(false)
    if (response.destroyed || response.write(bytes) || this.#waiting !== null) return
    const unreadBytes = response.writableLength
    this.#waiting = this.#unread.open(response, this.#orgId, unreadBytes, unreadBytes)
  }

  /** Returns the bytes that wait, as one chunk of HTTP, and after them the end of the body if they are the last. */
  #taken(isLast: boolean): Uint8Array {
    const parts = this.#parts
    const bytes = this.#bytes
    this.#parts = []
    this.#bytes = 0
    const head = this.#isFramed && bytes > 0 ? bytes.toString(16) + crlf : ''
    const tail = !this.#isFramed ? '' : (bytes > 0 ? crlf : '') + (isLast ? lastChunk : '')
    const frame = Buffer.allocUnsafe(head.length + bytes + tail.length)
    let at = frame.write(head, 'latin1')
    for (const part of parts) {
      frame.set(part, at)
      at += part.length
    }
    frame.write(tail, at, 'latin1')
    return frame
  }

  #drained(): void {
    if (this.#waiting !== null) this.#unread.close(this.#waiting)
    this.#waiting = null
    this.#wake()
  }
}
