/** What a provider sends before its stream has begun. */
import type { ChatLine } from '../../wire/chat/chat-tap.ts'

/** Most bytes that are kept of it; what comes behind them says nothing either and is left out. */
const earlyMaxBytes = 64 * 1024

/** Keeps the lines of a chat stream until one says something. Events without data, comments above all, are left out: a slow provider sends them for minutes. */
export class EarlyLines {
  readonly lines: Buffer[] = []
  /** The lines so far end inside an event. */
  isOpen = false
  /** Where the event under way begins. */
  #eventAt = 0
  #hasData = false
  #bytes = 0

  /** One more line, with its line end. */
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
