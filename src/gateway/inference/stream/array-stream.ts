/** The other form of a stream of Google's API: one JSON array that grows. Clients that do not ask for server-sent events get it. */
import { Reply } from '../../../platform/endpoint.ts'
import type { StreamSink } from '../../../platform/loop/stream-sink.ts'
import { SseEventReader } from '../../wire/sse/sse-events.ts'

const newLine = Buffer.from('\n')

/** Returns a streamed reply of server-sent events as an array of their objects. Other replies are unchanged. */
export function asArrayStream(made: Reply): Reply {
  const { status, headers, body, cookies } = made
  if (body.kind !== 'stream') return made
  const { pump, keepAlive } = body
  const written = async (sink: StreamSink): Promise<void> => {
    const array = new ArrayWriter()
    await pump({
      get isGone() {
        return sink.isGone
      },
      push: bytes => sink.push(array.add(bytes)),
      room: () => sink.room(),
    })
    if (!sink.isGone) sink.push(array.end())
  }
  // Between two objects of an array only white space is allowed.
  const living = keepAlive === undefined ? {} : { keepAlive: () => (keepAlive() === null ? null : newLine) }
  return new Reply(status, { ...headers, 'content-type': 'application/json; charset=utf-8' }, { kind: 'stream', pump: written, ...living }, cookies)
}

/** Writes the data of events as objects of one array. */
class ArrayWriter {
  readonly #events = new SseEventReader()
  #isOpen = false

  add(bytes: Uint8Array): Buffer {
    return Buffer.from(this.#written(this.#events.push(bytes)))
  }

  end(): Buffer {
    const last = this.#written(this.#events.end())
    return Buffer.from(`${this.#isOpen ? last : '['}]`)
  }

  #written(events: ReturnType<SseEventReader['push']>): string {
    let text = ''
    for (const event of events) {
      // Chunks without content only keep a stream open.
      if (event.kind !== 'event' || event.data === '{}') continue
      text += (this.#isOpen ? ',\r\n' : '[') + event.data
      this.#isOpen = true
    }
    return text
  }
}
