import type { ChatStreamDecoder, ChatStreamEvent } from '../../wire/chat-stream.ts'
import { type SseEvent, SseEventReader } from '../../wire/sse-events.ts'

/** Reads an OpenAI chat stream into hub events. */
export class OpenAiStreamDecoder implements ChatStreamDecoder {
  readonly #events = new SseEventReader()

  push(bytes: Uint8Array): readonly ChatStreamEvent[] {
    return this.#events.push(bytes).flatMap(eventOf)
  }

  end(): readonly ChatStreamEvent[] {
    return this.#events.end().flatMap(eventOf)
  }
}

function eventOf(event: SseEvent): readonly ChatStreamEvent[] {
  if (event.kind === 'comment') return [{ kind: 'alive' }]
  if (event.data.trim() === '[DONE]') return [{ kind: 'done' }]
  let value: unknown
  try {
    value = JSON.parse(event.data)
  } catch {
    return []
  }
  if (!isObject(value)) return []
  const { error } = value
  if (error === undefined || error === null) return [{ kind: 'chunk', chunk: value }]
  const text = (name: string): string | null => (isObject(error) && typeof error[name] === 'string' ? error[name] : null)
  const message = text('message') ?? (typeof error === 'string' ? error : 'The provider broke off the stream.')
  return [{ kind: 'error', fault: { message, type: text('type'), code: text('code') } }]
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
