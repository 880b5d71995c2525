import { createParser } from 'eventsource-parser'

/** One event of a stream: its name, when it has one, and its data lines joined. A comment has no data. */
export type SseEvent = { readonly kind: 'event'; readonly name: string | undefined; readonly data: string } | { readonly kind: 'comment' }

/** Cuts the bytes of an event stream into events, over any chunking, line ends and byte order mark; half a character at a chunk's end waits. */
export class SseEventReader {
  readonly #decoder = new TextDecoder()
  #found: SseEvent[] = []
  readonly #parser = createParser({
    onEvent: ({ event, data }) => this.#found.push({ kind: 'event', name: event, data }),
    onComment: () => this.#found.push({ kind: 'comment' }),
  })

  push(bytes: Uint8Array): readonly SseEvent[] {
    return this.#feed(this.#decoder.decode(bytes, { stream: true }))
  }

  /** The bytes have ended: the last event may lack its blank line. */
  end(): readonly SseEvent[] {
    return this.#feed(`${this.#decoder.decode()}\n\n`)
  }

  #feed(text: string): readonly SseEvent[] {
    this.#parser.feed(text)
    const found = this.#found
    this.#found = []
    return found
  }
}
