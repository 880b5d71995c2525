import { createParser } from 'eventsource-parser'

/** One event of a stream: its name, when it has one, and its data lines joined. A comment has no data. */
export type SseEvent = { readonly kind: 'event'; readonly name: string | undefined; readonly data: string } | { readonly kind: 'comment' }

/** Longest event that is put together, in characters: more than any picture inside a reply, and no danger to the memory of all. */
export const eventMaxChars = 48 * 1024 * 1024

/** Stands for an event that is longer: an error in the words of every format. What comes behind it is not read. */
const tooLong: SseEvent = {
  kind: 'event',
  name: 'error',
  data: JSON.stringify({ type: 'error', error: { type: 'api_error', code: 'upstream_stream_error', message: 'The provider sent an event that is too long.' } }),
}

/** Cuts the bytes of an event stream into events, over any chunking, line ends and byte order mark; half a character at a chunk's end waits. */
export class SseEventReader {
  readonly #decoder = new TextDecoder()
  #found: SseEvent[] = []
  #isOver = false
  readonly #parser = createParser({
    maxBufferSize: eventMaxChars,
    onError: ({ type }) => {
      if (type !== 'max-buffer-size-exceeded') return
      this.#isOver = true
      this.#found.push(tooLong)
    },
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
    if (this.#isOver) return []
    this.#parser.feed(text)
    const found = this.#found
    this.#found = []
    return found
  }
}
