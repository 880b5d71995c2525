/** The lines that a provider sends before its stream has begun. */
import type { ChatLine } from '../../wire/chat/chat-tap.ts'
import { GrowingBytes } from '../../wire/sse/growing-bytes.ts'

/** The most bytes of early lines that are kept. Later lines are left out; they have no content either. */
const earlyMaxBytes = 64 * 1024

/**
 * Keeps the lines of a chat stream up to the first line with content. It leaves out events without data. Most of these are comments, which a
 * slow provider may send for minutes. All lines are in one buffer: a buffer for each line would keep the memory around it.
 */
export class EarlyLines {
  /** True when the lines so far end inside an event. */
  isOpen = false
  readonly #lines = new GrowingBytes()
  /** The offset in `#lines` at which the current event begins. */
  #eventAt = 0
  #hasData = false

  /** The memory of the lines, in bytes. */
  get roomBytes(): number {
    return this.#lines.roomBytes
  }

  /** Adds one line with its line end. */
  add(kind: ChatLine, line: Uint8Array): void {
    const isEmpty = kind === 'blank' && !this.#hasData
    if (isEmpty || this.#lines.length + line.length > earlyMaxBytes) {
      this.#lines.truncate(this.#eventAt)
      this.isOpen = false
      this.#hasData = false
      return
    }
    this.#lines.append(line)
    this.isOpen = kind !== 'blank'
    if (kind === 'chunk') this.#hasData = true
    if (kind !== 'blank') return
    this.#eventAt = this.#lines.length
    this.#hasData = false
  }

  /** Returns all lines. They are not kept any more. */
  take(): Buffer {
    return this.#lines.take()
  }
}
