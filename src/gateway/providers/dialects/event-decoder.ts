import { type JsonObject, parsedObject } from '../../../platform/values/json.ts'
import { type ChatStreamDecoder, type ChatStreamEvent, refusedCode } from '../../wire/chat/chat-stream.ts'
import { type SseEvent, SseEventReader } from '../../wire/sse/sse-events.ts'

/** Maximum number of events in one stream that begin like an object but cannot be parsed. They are skipped, but each attempt to parse one takes time. */
const unreadMax = 100
/** Maximum number of consecutive keep-alives that are passed on. After that, the gateway's own keep-alives keep the client's connection open. */
const aliveMax = 100

/** Reads a stream event by event, however its bytes are chunked. Each format reads the content of the events itself. */
export abstract class EventDecoder implements ChatStreamDecoder {
  readonly #events: SseEventReader
  #unread = 0
  #alive = 0
  #count = 0
  #isOver = false

  /** `eventMaxBytes` is the maximum size of an event. The default is the limit for providers that the operator chose. */
  constructor(eventMaxBytes?: number) {
    this.#events = new SseEventReader(eventMaxBytes)
  }

  get heldBytes(): number {
    return this.#events.heldBytes
  }

  get events(): number {
    return this.#count
  }

  push(bytes: Uint8Array): readonly ChatStreamEvent[] {
    return this.#read(this.#events.push(bytes))
  }

  end(): readonly ChatStreamEvent[] {
    return this.#read(this.#events.end())
  }

  #read(events: readonly SseEvent[]): readonly ChatStreamEvent[] {
    const out: ChatStreamEvent[] = []
    for (const event of events) {
      if (this.#isOver) break
      if (event.kind === 'event') this.#count++
      for (const made of this.read(event)) {
        this.#alive = made.kind === 'alive' ? this.#alive + 1 : 0
        if (this.#alive <= aliveMax) out.push(made)
      }
      if (this.#unread > unreadMax) {
        this.#isOver = true
        out.push(tooMuch('The provider sent too many events that cannot be read.'))
      }
    }
    return out
  }

  /** True between two events, until the stream is over. */
  protected get atBoundary(): boolean {
    return !this.#isOver && this.#events.atBoundary
  }

  /** Notes that so many events with output were read as a whole. */
  protected passed(events: number): void {
    this.#count += events
    this.#alive = 0
    this.#events.passed(events)
  }

  protected abstract read(event: SseEvent): readonly ChatStreamEvent[]

  /** Returns the JSON object in the data of an event. Returns null when there is none. */
  protected object(data: string): JsonObject | null {
    if (!/^\s*\{/.test(data)) return null
    const value = parsedObject(data)
    if (value === null) this.#unread++
    return value
  }
}

/** Returns the event that ends a stream because it exceeds a limit of the gateway. */
export const tooMuch = (message: string): ChatStreamEvent => ({ kind: 'error', fault: { message, type: 'api_error', code: refusedCode } })
