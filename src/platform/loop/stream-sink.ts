/** Streams of bytes that are pushed. While nothing has to wait, a chunk passes from its source to the reader in one synchronous call. Decision 0535 says why. */

/** The reader of a stream, as its writer sees it. */
export interface StreamSink {
  /** True when the reader has left. Bytes that are pushed after that are dropped. */
  readonly isGone: boolean
  /** Passes bytes on. Returns false when the reader has left or has no room; before it pushes more, the writer then waits for `room`. */
  push(bytes: Uint8Array): boolean
  /** Resolves when the reader has room again, or when it has left. */
  room(): Promise<void>
}

/**
 * Pushes a whole stream to its reader. Resolves at the end of the stream, also when the reader has left. Rejects when the stream broke off. It is called once.
 */
export type StreamPump = (sink: StreamSink) => Promise<void>

/** Returns a sink that passes on what `change` returns for each chunk. */
export function changedSink(sink: StreamSink, change: (bytes: Uint8Array) => Uint8Array): StreamSink {
  return {
    get isGone() {
      return sink.isGone
    },
    push: bytes => sink.push(change(bytes)),
    room: () => sink.room(),
  }
}

/**
 * Returns the chunks of a stream for a reader that pulls them. The stream starts with the first `next`, and goes on when its chunks are read. A reader that
 * calls `return` has left. `return` resolves at the end of the stream.
 */
export const pulled = (pump: StreamPump): AsyncIterableIterator<Uint8Array> => new PulledChunks(pump)

class PulledChunks implements StreamSink, AsyncIterableIterator<Uint8Array> {
  isGone = false
  readonly #pump: StreamPump
  #chunks: Uint8Array[] = []
  #ended: Promise<void> | null = null
  #isOver = false
  /** Ends the wait of the reader for a chunk. Null while it does not wait. */
  #wakeReader: (() => void) | null = null
  #wakeWriter: (() => void) | null = null

  constructor(pump: StreamPump) {
    this.#pump = pump
  }

  push(bytes: Uint8Array): boolean {
    if (this.isGone) return false
    this.#chunks.push(bytes)
    this.#goOn()
    return false
  }

  room(): Promise<void> {
    return new Promise(resolve => {
      if (this.isGone || this.#wakeReader !== null) resolve()
      else this.#wakeWriter = resolve
    })
  }

  async next(): Promise<IteratorResult<Uint8Array, undefined>> {
    if (this.#ended === null && !this.isGone) this.#start()
    while (this.#chunks.length === 0 && !this.#isOver && !this.isGone) {
      await new Promise<void>(resolve => {
        this.#wakeReader = resolve
        this.#wakeWriter?.()
      })
    }
    const value = this.#chunks.shift()
    if (value !== undefined) return { done: false, value }
    await this.#ended
    return { done: true, value: undefined }
  }

  async return(): Promise<IteratorResult<Uint8Array, undefined>> {
    this.isGone = true
    this.#chunks = []
    this.#wakeWriter?.()
    await this.#ended
    return { done: true, value: undefined }
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  #start(): void {
    this.#ended = this.#pump(this)
    const over = (): void => {
      this.#isOver = true
      this.#goOn()
    }
    this.#ended.then(over, over)
  }

  #goOn(): void {
    const wake = this.#wakeReader
    this.#wakeReader = null
    wake?.()
  }
}
