/** Decodes bodies that a provider compresses although the request forbade it. */
import { Readable, type Transform } from 'node:stream'
import zlib from 'node:zlib'
import { BodyPieces } from '../../../platform/loop/body-pieces.ts'
import type { RoomOfReply } from '../../../platform/outbound/held-replies.ts'
import { BodyTooLargeError, type FlowEnd, type OutboundReply, type UpstreamBody } from '../../../platform/outbound/upstream-body.ts'

/** Returns the reply with its body decoded, or the same reply when its body has no encoding. Throws on an unknown encoding. */
export function decodedReply(reply: OutboundReply, isOwn = false): OutboundReply {
  const encoding = reply.headers['content-encoding']
  if (encoding === undefined || encoding === 'identity' || encoding === '') return reply
  const name = String(encoding).trim().toLowerCase()
  const transform = isOwn && !smallWindows.has(name) ? null : decoderOf(name)
  if (transform === null) {
    reply.body.destroy()
    throw new Error(`the provider compressed its reply with ${String(encoding).slice(0, 32)}, which was not asked for and cannot be read`)
  }
  return { ...reply, body: new DecodedBody(reply.body, transform) }
}

/** Encodings whose decoder needs little memory. Those of brotli and zstd may keep 16 MB and more for each stream, whatever they decode. */
const smallWindows: ReadonlySet<string> = new Set(['gzip', 'x-gzip', 'deflate'])

function decoderOf(encoding: string): Transform | null {
  switch (encoding) {
    case 'gzip':
    case 'x-gzip':
      return zlib.createGunzip()
    case 'deflate':
      return zlib.createInflate()
    case 'br':
      return zlib.createBrotliDecompress()
    case 'zstd':
      // Node 20 has no zstd.
      return 'createZstdDecompress' in zlib && typeof zlib.createZstdDecompress === 'function' ? (zlib.createZstdDecompress as () => Transform)() : null
    default:
      return null
  }
}

const noBytes = new Uint8Array()

class DecodedBody implements UpstreamBody {
  readonly #body: UpstreamBody
  readonly #stream: Transform
  #nudge: (() => void) | null = null
  #isNudged = false
  #orgId: number | null = null
  /** The one reader of the decoded bytes. */
  #chunks: AsyncIterator<Uint8Array> | null = null

  constructor(body: UpstreamBody, transform: Transform) {
    this.#body = body
    this.#stream = transform
    const source = Readable.from(body)
    source.on('error', error => transform.destroy(error))
    // A reader gets the error from the stream. A destroyed body has no reader, so the error must not be unhandled.
    transform.on('error', () => body.destroy())
    source.pipe(transform)
  }

  [Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
    this.#chunks ??= this.#decoded()
    return this.#chunks
  }

  get turns(): UpstreamBody['turns'] {
    return this.#body.turns
  }

  async flow(take: (chunk: Uint8Array) => boolean, orgId?: number): Promise<FlowEnd> {
    if (orgId !== undefined) this.#orgId = orgId
    const chunks = this[Symbol.asyncIterator]()
    for (;;) {
      const next = await chunks.next()
      if (next.done) return 'ended'
      if (next.value.length === 0) return 'nudged'
      if (!(await this.#inTurn(() => take(next.value)))) return 'stopped'
    }
  }

  /**
   * Does the work when it is the turn of this stream. Decoders end their work together, and a few bytes become many events. So each part waits for a turn,
   * which a stream without an encoding does only after much.
   */
  #inTurn<T>(work: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      this.turns.rest(this.#orgId, () => {
        try {
          resolve(work())
        } catch (error) {
          reject(error)
        }
      })
    })
  }

  async *#decoded(): AsyncGenerator<Uint8Array, void, undefined> {
    const parts = this.#stream[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>
    let reading: Promise<IteratorResult<Uint8Array>> | null = null
    try {
      for (;;) {
        reading ??= parts.next()
        const read: IteratorResult<Uint8Array> | null = await Promise.race([reading, this.#nudged()])
        if (read === null) {
          this.#isNudged = false
          yield noBytes
          continue
        }
        reading = null
        if (read.done) return
        yield read.value
      }
    } finally {
      this.destroy()
    }
  }

  #nudged(): Promise<null> {
    return this.#isNudged
      ? Promise.resolve(null)
      : new Promise(resolve => {
          this.#nudge = () => resolve(null)
        })
  }

  nudge(): void {
    this.#isNudged = true
    this.#nudge?.()
  }

  /** The decoder works in the background, so no body has arrived. */
  arrived(): null {
    return null
  }

  async buffer(maxBytes: number, room?: RoomOfReply): Promise<Buffer> {
    const parts = new BodyPieces()
    for await (const part of this.#stream as AsyncIterable<Buffer>) {
      while (room !== undefined && !this.#stream.destroyed && !room.take(part.byteLength)) await this.#free(room)
      parts.add(part)
      if (parts.bytes > maxBytes) {
        this.destroy()
        throw new BodyTooLargeError(`the reply is larger than ${maxBytes} bytes`)
      }
    }
    return parts.joined()
  }

  /** Resolves when there may be room or the stream has ended. Until then the stream has no reader, so the socket pauses. */
  #free(room: RoomOfReply): Promise<void> {
    return new Promise(resolve => {
      const wake = (): void => {
        this.#stream.off('close', wake)
        resolve()
      }
      this.#stream.once('close', wake)
      room.whenFree(wake)
    })
  }

  destroy(): void {
    this.#body.destroy()
    this.#stream.destroy()
  }

  detachSignal(): void {
    this.#body.detachSignal()
  }
}
