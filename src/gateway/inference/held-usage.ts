import { GrowingBytes } from '../wire/sse/growing-bytes.ts'

/** The most lines, and bytes of lines, that are kept after a waiting line with usage. More lines than that are comments without content. */
const tailMaxLines = 1000
const tailMaxBytes = 64 * 1024

/**
 * Keeps a line of a stream that has usage, with the comments after it, until the next chunk or the end of the stream. If the next chunk has usage too,
 * this line is sent without a bill. Otherwise it gets the bill.
 */
export class HeldUsage {
  readonly line: Buffer
  /** True when a bill can be added at the end of the line's JSON object. */
  readonly takesBill: boolean
  /** The lines after it: the end of its event, and comments. */
  readonly #tail = new GrowingBytes()
  /** True when the event of the last line that was kept has ended. */
  isClosed = false
  #tailLines = 0
  /** True when the line before was left out. The end of its event is then left out too. */
  #leavesOut = false

  constructor(line: Buffer, takesBill: boolean) {
    this.line = line
    this.takesBill = takesBill
  }

  /** Keeps a line of `length` bytes when there is room for it; `copy` returns the line. The end of an open event is always kept. */
  hold(length: number, isBlank: boolean, copy: () => Buffer): void {
    const fits = this.#tailLines < tailMaxLines && this.#tail.length + length <= tailMaxBytes && !(isBlank && this.#leavesOut)
    this.#leavesOut = !fits && !isBlank
    if (!fits && (!isBlank || this.isClosed)) return
    this.#tail.append(copy())
    this.#tailLines++
    this.isClosed = isBlank
  }

  /** The memory of the lines, in bytes. */
  get roomBytes(): number {
    return this.line.length + this.#tail.roomBytes
  }

  /** Returns the lines after the usage. They are not kept any more. */
  takeTail(): Buffer {
    return this.#tail.take()
  }
}
