import { type Dispatcher, errors } from 'undici'
import { systemClock } from '../clock.ts'
import { BodyPieces } from '../loop/body-pieces.ts'
import type { CancelSignal } from '../loop/cancellation.ts'
import { isTooFine } from '../loop/fine-pieces.ts'
import { nextTurn } from '../loop/next-turn.ts'
import { StreamTurns } from '../loop/stream-turns.ts'
import type { RoomOfReply } from './held-replies.ts'

/** The body of an upstream reply. Read it once, as chunks or as a whole, or destroy it. Decision 0081 gives the reasons. */
export interface UpstreamBody extends AsyncIterable<Uint8Array> {
  /** Returns the whole body when it has arrived in one piece of at most `maxBytes`, as nearly all short bodies do. Null otherwise; it is then still unread. */
  arrived(maxBytes: number): Buffer | null
  /**
   * Returns the whole body as one buffer, synchronously when it has already arrived. Throws BodyTooLargeError above the limit. With `room`, it waits
   * whenever there is no room for the bytes that have arrived.
   */
  buffer(maxBytes: number, room?: RoomOfReply): Buffer | Promise<Buffer>
  /**
   * Passes the next chunks to `take` as they arrive, without a wait in between. Resolves with 'stopped' when `take` returns false, with 'nudged' after a
   * nudge, and with 'ended' at the end of the body. Rejects when the body breaks off, or with the error of `take`. Later chunks wait for the next read.
   * Bodies that bring much share the event loop, and the organisations `orgId` of their calls take turns.
   */
  flow(take: (chunk: Uint8Array) => boolean, orgId?: number): Promise<FlowEnd>
  /** The turns that the bodies of this client take. */
  readonly turns: StreamTurns
  /** Closes the connection. A pending read rejects. */
  destroy(): void
  /**
   * Makes the read that waits for data return an empty chunk. If no read waits now, the next read that would wait returns an empty chunk. The connection
   * stays open.
   */
  nudge(): void
  /** From now on, the request's signal does not close the connection. A relay that must end at an event boundary calls `destroy` itself. */
  detachSignal(): void
}

/** Why a flow of chunks has ended. */
export type FlowEnd = 'stopped' | 'nudged' | 'ended'

export interface OutboundReply {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  /** The receiver must either read the body or destroy it. */
  readonly body: UpstreamBody
}

export class BodyTooLargeError extends Error {
  override readonly name = 'BodyTooLargeError'
}

const noBytes = new Uint8Array()
const pauseAboveChunks = 16
/** With `refusesFine`, chunks of at most this length are joined when several are unread. */
const smallChunkBytes = 1024
const joinAboveChunks = 8
/** Size of the buffer for such chunks. */
const joinedMaxBytes = 8 * 1024
/** The socket is also paused above this number of unread bytes. A limit on the number of chunks is not enough, because a chunk has up to 64 KB. */
const pauseAboveBytes = 128 * 1024
/**
 * After this number of bytes, other work of the process runs before the reader gets more. Each chunk counts as at least `chunkMinBytes`, because every
 * chunk has a cost.
 */
const turnMaxBytes = 32 * 1024
const chunkMinBytes = 256
/** A longer chunk is returned in parts. */
const partMaxBytes = 16 * 1024
/** Maximum number of informational replies (1xx) before the reply. A server that is at work may send one every few seconds. */
const informationalMax = 64

/** How the replies of a client are read. */
export interface ReadingRules {
  /** A body that is cut too finely breaks off. */
  readonly refusesFine: boolean
  /** Longest wait for the status of a reply, in milliseconds, unless the request has its own. 0: no limit. */
  readonly headersTimeoutMs: number
  readonly turns: StreamTurns
}

const usualRules: ReadingRules = { refusesFine: false, headersTimeoutMs: 0, turns: new StreamTurns(systemClock) }

/**
 * Sends a request with undici. Resolves with status, headers and a body that the reader pulls, or that flows to it. It is used instead of `request()`,
 * because undici's stream costs more than the whole relay. Backpressure: the socket is paused above 16 unread chunks or 128 KiB of them. Rejects after more
 * than 64 informational replies. They do not extend the wait for the status.
 */
export function dispatch(
  dispatcher: Dispatcher,
  options: Dispatcher.DispatchOptions,
  signal: CancelSignal | undefined,
  rules: ReadingRules = usualRules,
): Promise<OutboundReply> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    const exchange = new Exchange(resolve, reject, signal, rules, options.headersTimeout ?? rules.headersTimeoutMs)
    dispatcher.dispatch(options, exchange)
  })
}

interface Flow {
  readonly take: (chunk: Uint8Array) => boolean
  readonly resolve: (why: FlowEnd) => void
  readonly reject: (error: unknown) => void
}

class Exchange implements Dispatcher.DispatchHandler, UpstreamBody {
  #controller: Dispatcher.DispatchController | null = null
  #chunks: Uint8Array[] = []
  /** Bytes of the unread chunks. */
  #unreadBytes = 0
  /**
   * The buffer for small chunks. The last unread chunk is the part from `#joinedFrom` to `#joinedTo`. null: the last unread chunk is not in such a buffer.
   */
  #joined: Buffer | null = null
  #joinedFrom = 0
  #joinedTo = 0
  #ended = false
  #error: unknown = null
  #failed = false
  #started = false
  #wake: (() => void) | null = null
  /** Takes chunks as they arrive. Null while no flow is under way. */
  #flow: Flow | null = null
  /** True while a chunk is being taken. */
  #isTaking = false
  /** True while the flow waits for the next turn of the event loop. */
  #isResting = false
  /** Bytes that the reader got in this turn. */
  #turnBytes = 0
  /** Ends a wait for room. */
  #wakeRoom: (() => void) | null = null
  #isNudged = false
  readonly #resolve: (reply: OutboundReply) => void
  readonly #reject: (error: unknown) => void
  readonly #signal: CancelSignal | undefined
  readonly #onAbort = (): void => this.#abort(this.#signal?.reason)

  readonly #refusesFine: boolean
  #receivedPieces = 0
  #receivedBytes = 0
  readonly turns: StreamTurns
  /** The organisation whose call reads the body. Null: it is not known. */
  #orgId: number | null = null
  readonly #headersTimeoutMs: number
  #sentAtMs = 0
  #informational = 0
  #stopWait: (() => void) | null = null

  constructor(
    resolve: (reply: OutboundReply) => void,
    reject: (error: unknown) => void,
    signal: CancelSignal | undefined,
    { refusesFine, turns }: ReadingRules,
    headersTimeoutMs: number,
  ) {
    this.#refusesFine = refusesFine
    this.turns = turns
    this.#headersTimeoutMs = headersTimeoutMs
    this.#resolve = resolve
    this.#reject = reject
    this.#signal = signal
    signal?.addEventListener('abort', this.#onAbort, { once: true })
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    this.#sentAtMs = systemClock.monotonicMs()
    if (this.#failed) controller.abort(asError(this.#error))
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: OutboundReply['headers']): void {
    if (status < 200) {
      this.#inform()
      return
    }
    this.#started = true
    this.#stopWait?.()
    this.#resolve({ status, headers, body: this })
  }

  /**
   * Counts an informational reply. undici begins its wait for the status with each of them, so from the first one on a timer of this exchange ends the wait.
   * Decision 0661 says why.
   */
  #inform(): void {
    if (++this.#informational > informationalMax) {
      this.#abort(new Error('the server sends informational replies without end'))
      return
    }
    if (this.#stopWait !== null || this.#headersTimeoutMs === 0) return
    const leftMs = this.#headersTimeoutMs - (systemClock.monotonicMs() - this.#sentAtMs)
    this.#stopWait = systemClock.after(Math.max(0, leftMs), () => this.#abort(new errors.HeadersTimeoutError()))
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#receivedBytes += chunk.length
    if (this.#refusesFine && isTooFine(++this.#receivedPieces, this.#receivedBytes)) {
      this.#abort(new Error('the reply comes in pieces that are too small'))
      return
    }
    const isNext = this.#chunks.length === 0 && !this.#isResting && chunk.length <= partMaxBytes && !this.turns.isSpent
    if (this.#flow !== null && isNext) this.#take(this.#flow, chunk)
    else this.#keep(controller, chunk)
    this.#wakeReader()
  }

  /** Keeps a chunk for the next read, and pauses the socket when there are many. */
  #keep(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#refusesFine && chunk.length <= smallChunkBytes && this.#chunks.length >= joinAboveChunks) this.#join(chunk)
    else {
      this.#chunks.push(chunk)
      this.#joined = null
    }
    this.#unreadBytes += chunk.length
    if ((this.#unreadBytes > pauseAboveBytes || this.#chunks.length > pauseAboveChunks) && this.#wake === null) controller.pause()
  }

  /**
   * Appends a small chunk to the last unread one. A body in one-byte chunks then fills a whole buffer before the socket is paused. Without this, the socket
   * would be paused after 16 bytes, and undici would copy all arrived data at each pause.
   */
  #join(chunk: Buffer): void {
    const last = this.#chunks.length - 1
    let joined = this.#joined
    const continues = joined !== null && joined.length - this.#joinedTo >= chunk.length
    if (joined === null || !continues) {
      joined = Buffer.allocUnsafeSlow(joinedMaxBytes)
      this.#joined = joined
      this.#joinedFrom = this.#joinedTo = 0
    }
    joined.set(chunk, this.#joinedTo)
    this.#joinedTo += chunk.length
    const unread = joined.subarray(this.#joinedFrom, this.#joinedTo)
    if (continues) this.#chunks[last] = unread
    else this.#chunks.push(unread)
  }

  onResponseEnd(): void {
    this.#ended = true
    this.#done()
  }

  flow(take: (chunk: Uint8Array) => boolean, orgId?: number): Promise<FlowEnd> {
    if (orgId !== undefined) this.#orgId = orgId
    return new Promise((resolve, reject) => {
      this.#flow = { take, resolve, reject }
      this.#pump()
    })
  }

  #take({ take, reject }: Flow, chunk: Uint8Array): void {
    this.#isTaking = true
    try {
      if (!take(chunk)) this.#stop('stopped')
    } catch (error) {
      this.#flow = null
      reject(error)
    }
    this.#isTaking = false
    const bytes = Math.max(chunk.length, chunkMinBytes)
    this.#turnBytes += bytes
    this.turns.spend(bytes)
    if (this.#turnBytes > turnMaxBytes && this.#flow !== null) this.#rest()
  }

  /** Passes on what has arrived, and then waits for more. It ends the flow when nothing more can come. */
  #pump(): void {
    for (let flow = this.#flow; flow !== null && !this.#isResting; flow = this.#flow) {
      if (this.#chunks.length > 0 && this.turns.isSpent) {
        this.#rest()
        return
      }
      const chunk = this.#nextPart()
      if (chunk !== undefined) {
        this.#unreadBytes -= chunk.length
        this.#take(flow, chunk)
      } else if (this.#failed) {
        this.#flow = null
        flow.reject(this.#error)
      } else if (this.#ended) this.#stop('ended')
      else if (this.#isNudged) {
        this.#isNudged = false
        this.#stop('nudged')
      } else {
        if (this.#controller?.paused) this.#controller.resume()
        return
      }
    }
  }

  #stop(why: FlowEnd): void {
    const flow = this.#flow
    this.#flow = null
    flow?.resolve(why)
  }

  /** Lets other work run. Otherwise a burst that has already arrived would be processed completely before it. */
  #rest(): void {
    this.#isResting = true
    this.#turnBytes = 0
    this.turns.rest(this.#orgId, () => {
      this.#isResting = false
      this.#pump()
    })
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    if (!this.#failed) {
      this.#failed = true
      this.#error = error
    }
    if (!this.#started) this.#reject(this.#error)
    this.#done()
  }

  arrived(maxBytes: number): Buffer | null {
    const only = this.#onlyPiece(maxBytes)
    return only === null ? null : this.#taken(only)
  }

  buffer(maxBytes: number, room?: RoomOfReply): Buffer | Promise<Buffer> {
    const only = this.#onlyPiece(maxBytes)
    if (only !== null && room?.take(only.byteLength) !== false) return this.#taken(only)
    return this.#collect(maxBytes, room)
  }

  /** Returns the body when it has arrived in one piece. A short body usually arrives so, together with its headers. */
  #onlyPiece(maxBytes: number): Buffer | null {
    if (!this.#ended || this.#failed || this.#chunks.length !== 1) return null
    const only = this.#chunks[0]
    return Buffer.isBuffer(only) && only.byteLength <= maxBytes ? only : null
  }

  #taken(only: Buffer): Buffer {
    this.#chunks = []
    this.#unreadBytes = 0
    return only
  }

  async #collect(maxBytes: number, room: RoomOfReply | undefined): Promise<Buffer> {
    const pieces = new BodyPieces()
    for (;;) {
      if (this.#failed) throw this.#error
      if (room !== undefined && !room.take(this.#unreadBytes)) {
        await this.#free(room)
        continue
      }
      for (const chunk of this.#chunks.splice(0)) pieces.add(chunk)
      this.#joined = null
      this.#unreadBytes = 0
      if (pieces.bytes > maxBytes) {
        this.destroy()
        throw new BodyTooLargeError(`the reply is larger than ${maxBytes} bytes`)
      }
      if (this.#ended) break
      await this.#more()
    }
    return pieces.joined()
  }

  destroy(): void {
    if (!this.#ended) this.#abort(new Error('the reply was abandoned'))
  }

  nudge(): void {
    this.#isNudged = true
    this.#wakeReader()
  }

  detachSignal(): void {
    this.#signal?.removeEventListener('abort', this.#onAbort)
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    let turnBytes = 0
    try {
      for (;;) {
        const chunk = this.#nextPart()
        if (chunk !== undefined) {
          this.#unreadBytes -= chunk.length
          turnBytes += Math.max(chunk.length, chunkMinBytes)
          if (turnBytes > turnMaxBytes) {
            // Other work runs here. Otherwise a burst of data that has already arrived would be processed completely first.
            await nextTurn()
            turnBytes = chunk.length
          }
          yield chunk
          continue
        }
        if (this.#failed) throw this.#error
        if (this.#ended) return
        if (this.#isNudged) {
          this.#isNudged = false
          yield noBytes
        } else await this.#more()
      }
    } finally {
      this.destroy()
    }
  }

  #nextPart(): Uint8Array | undefined {
    const chunk = this.#chunks[0]
    // Nothing may be appended to a chunk that is being read.
    if (this.#chunks.length === 1) this.#joined = null
    if (chunk === undefined || chunk.length <= partMaxBytes) return this.#chunks.shift()
    this.#chunks[0] = chunk.subarray(partMaxBytes)
    return chunk.subarray(0, partMaxBytes)
  }

  #more(): Promise<void> {
    return new Promise(resolve => {
      this.#wake = resolve
      if (this.#controller?.paused) this.#controller.resume()
    })
  }

  /** Resolves when there may be room, or when the exchange has failed. The socket is paused until then. */
  #free(room: RoomOfReply): Promise<void> {
    if (this.#controller?.paused === false) this.#controller.pause()
    return new Promise(resolve => {
      this.#wakeRoom = resolve
      room.whenFree(resolve)
    })
  }

  #wakeReader(): void {
    if (this.#flow !== null && !this.#isTaking) this.#pump()
    const wake = this.#wake
    this.#wake = null
    wake?.()
  }

  #abort(reason: unknown): void {
    if (this.#failed || this.#ended) return
    this.#failed = true
    this.#error = reason
    this.#controller?.abort(asError(reason))
    if (!this.#started) this.#reject(reason)
    this.#done()
  }

  #done(): void {
    this.#signal?.removeEventListener('abort', this.#onAbort)
    this.#stopWait?.()
    this.#wakeReader()
    this.#wakeRoom?.()
  }
}

function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error('aborted')
}
