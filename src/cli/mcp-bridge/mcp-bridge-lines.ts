import type { Readable, Writable } from 'node:stream'

/** Maximum size of a client's message in bytes. The gateway accepts only 4 MiB, and its own error reports that limit. */
export const lineMaxBytes = 16 * 1024 * 1024

/** The text of a line. It is `null` for a line that was too long and was skipped. */
export type InputLine = string | null

const lineFeed = 0x0a

/** Yields the lines of a stream, without their ends and without blank lines. It ends with the stream. */
export async function* linesOf(input: Readable): AsyncGenerator<InputLine> {
  let parts: Buffer[] = []
  let bytes = 0
  const take = (): InputLine => {
    const line = bytes > lineMaxBytes ? null : Buffer.concat(parts).toString('utf8').trim()
    parts = []
    bytes = 0
    return line
  }
  for await (const chunk of input) {
    const data = Buffer.isBuffer(chunk) ? chunk : Buffer.from(String(chunk))
    let from = 0
    for (;;) {
      const end = data.indexOf(lineFeed, from)
      const part = data.subarray(from, end < 0 ? data.length : end)
      bytes += part.length
      if (bytes <= lineMaxBytes) parts.push(part)
      if (end < 0) break
      from = end + 1
      const line = take()
      if (line !== '') yield line
    }
  }
  const last = take()
  if (last !== '') yield last
}

/** Writes whole lines, and waits while the reader is slow. After the reader has disconnected, nothing is written. */
export class LineWriter {
  readonly #output: Writable
  #isOpen = true
  #drained: Promise<void> | null = null

  /** `onGone` is called once, when the reader has disconnected. */
  constructor(output: Writable, onGone: () => void) {
    this.#output = output
    const gone = (): void => {
      if (!this.#isOpen) return
      this.#isOpen = false
      onGone()
    }
    output.on('error', gone)
    output.on('close', gone)
  }

  /** Writes one message. Line breaks inside JSON are only blanks between its parts, so they are replaced. */
  async write(json: string): Promise<void> {
    if (!this.#isOpen) return
    if (this.#output.write(`${json.replaceAll(/[\r\n]+/g, ' ')}\n`)) return
    this.#drained ??= new Promise<void>(resolve => {
      const done = (): void => {
        for (const event of ['drain', 'error', 'close']) this.#output.off(event, done)
        this.#drained = null
        resolve()
      }
      for (const event of ['drain', 'error', 'close']) this.#output.on(event, done)
    })
    await this.#drained
  }
}
