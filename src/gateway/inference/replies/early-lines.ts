/** The lines that a provider sends before its stream has begun. */
import type { ChatLine } from '../../wire/chat/chat-tap.ts'

/** The most bytes of early lines that are kept. Later lines are left out; they have no content either. */
const earlyMaxBytes = 64 * 1024

/**
 * Keeps the lines of a chat stream up to the first line with content. It leaves out events without data. Most of these are comments, which a
 * slow provider may send for minutes.
 */
export class EarlyLines {
  readonly lines: Buffer[] = []
  /** True when the lines so far end inside an event. */
  isOpen = false
  /** The index in `lines` at which the current event begins. */
  #eventAt = 0
  #hasData = false
  #bytes = 0

  /** Adds one line with its line end. */
  add(kind: ChatLine, line: Buffer): void {
    const isEmpty = kind === 'blank' && !this.#hasData
    if (isEmpty || this.#bytes + line.length > earlyMaxBytes) {
      for (const left of this.lines.splice(this.#eventAt)) this.#bytes -= left.length
      this.isOpen = false
      this.#hasData = false
      return
    }
    this.lines.push(line)
    this.#bytes += line.length
    this.isOpen = kind !== 'blank'
    if (kind === 'chunk') this.#hasData = true
    if (kind !== 'blank') return
    this.#eventAt = this.lines.length
    this.#hasData = false
  }
}
