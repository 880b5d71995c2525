import type { ChatStreamDecoder, ChatStreamEvent } from '../../wire/chat-stream.ts'
import { type SseEvent, SseEventReader } from '../../wire/sse-events.ts'

/** Reads a stream event by event, over any chunking; what an event says is for the format. */
export abstract class EventDecoder implements ChatStreamDecoder {
  readonly #events = new SseEventReader()

  push(bytes: Uint8Array): readonly ChatStreamEvent[] {
    return this.#events.push(bytes).flatMap(event => this.read(event))
  }

  end(): readonly ChatStreamEvent[] {
    return this.#events.end().flatMap(event => this.read(event))
  }

  protected abstract read(event: SseEvent): readonly ChatStreamEvent[]
}
