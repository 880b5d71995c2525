import type { WriteStream } from 'node:tty'
import { isDumbTerminal } from '../../config.ts'

/** How a part of a text looks on a terminal with colours. */
export type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan'

/** Puts a style on a text. Without colours it returns the text unchanged. */
export type Paint = (style: Style, text: string) => string

const codes: Readonly<Record<Style, readonly [on: number, off: number]>> = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  cyan: [36, 39],
}

/** Returns the text as it is. */
export const noPaint: Paint = (_style, text) => text

const inColour: Paint = (style, text) => `\u001b[${codes[style][0]}m${text}\u001b[${codes[style][1]}m`

const eraseLine = '\r\u001b[2K'

/**
 * The terminal behind stdout or stderr. It shows lines, and below them one line of status that later output replaces. Node.js decides about colours: it
 * reads `NO_COLOR`, `FORCE_COLOR` and `TERM`. A terminal with `TERM=dumb` shows no status, because it cannot erase a line.
 */
export class Terminal {
  readonly paint: Paint
  /** Whether the terminal can replace a line. */
  readonly canReplace: boolean
  readonly #stream: WriteStream
  #status: string | null = null

  constructor(stream: WriteStream, isDumb: boolean) {
    this.#stream = stream
    this.canReplace = !isDumb
    this.paint = stream.hasColors() ? inColour : noPaint
  }

  /** Writes whole lines above the status. */
  lines(text: string): void {
    if (this.#status === null) this.#stream.write(`${text}\n`)
    else this.#stream.write(`${eraseLine}${text}\n${this.#status}`)
  }

  /** Replaces the status. Null takes it away. `text` has no style, so that it can be cut to the width of the terminal. */
  status(text: string | null): void {
    if (!this.canReplace || (text === null && this.#status === null)) return
    // The last column stays free, because some terminals begin a new line there.
    const shown = text === null ? null : this.paint('dim', text.slice(0, Math.max(20, (this.#stream.columns ?? 80) - 1)))
    if (shown === this.#status) return
    this.#stream.write(`${eraseLine}${shown ?? ''}`)
    this.#status = shown
  }
}

const known = new Map<NodeJS.WriteStream, Terminal>()

/** Returns the terminal of a standard stream, or null when the stream is no terminal. There is one for each stream, so that its writers know of each other. */
export function terminalOf(stream: NodeJS.WriteStream): Terminal | null {
  if (!stream.isTTY) return null
  const found = known.get(stream) ?? new Terminal(stream as unknown as WriteStream, isDumbTerminal())
  known.set(stream, found)
  return found
}
