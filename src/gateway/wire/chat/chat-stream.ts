/** A chat stream in the hub format, as values. Every upstream format is read into it and every client format is written from it. */

import { isObject } from '../../../platform/values/json.ts'
import type { RepeatedEvents } from '../sse/repeated-events.ts'

/** One OpenAI `chat.completion.chunk`. The type is loose, because other fields are kept. `usage` is in the last chunk. */
export interface ChatChunk extends Record<string, unknown> {
  readonly choices?: unknown
  readonly usage?: unknown
}

/** The failure that a stream reports. */
export interface StreamFault {
  readonly message: string
  /** The `error.type` of the wire, such as `overloaded_error`; null: not given. */
  readonly type: string | null
  readonly code: string | null
}

/** The `code` of a fault when a stream exceeds a bound of this gateway. */
export const refusedCode = 'upstream_stream_error'

/** Reads the fault from a provider's `error`: an object with message, type and code, or a text. */
export function faultFrom(error: unknown): StreamFault {
  const field = (name: string): string | null => {
    const value = isObject(error) ? error[name] : undefined
    return typeof value === 'string' ? value : typeof value === 'number' ? String(value) : null
  }
  const message = field('message') ?? (typeof error === 'string' ? error : 'The provider broke off the stream.')
  return { message, type: field('type'), code: field('code') }
}

export type ChatStreamEvent =
  /** `outputChars`: the number of characters of output that the provider sent for this chunk. It is present if the chunk itself shows another number. */
  | { readonly kind: 'chunk'; readonly chunk: ChatChunk; readonly outputChars?: number }
  /** The provider reports a failure. It is the last event. */
  | { readonly kind: 'error'; readonly fault: StreamFault }
  /** The provider is alive but has no output yet. */
  | { readonly kind: 'alive' }
  /** The format's own end mark. */
  | { readonly kind: 'done' }

/**
 * Reads an upstream stream into hub events. Each stream has its own decoder. The events do not depend on how the bytes are divided into chunks. Bytes that
 * the decoder does not understand are skipped. The decoder never throws. Hub chunks have the form of OpenAI: the role is in the first delta, `index` counts
 * tool calls from 0, the first delta of each call has its id and name, there is one `finish_reason`, and the last chunk has the usage.
 */
export interface ChatStreamDecoder {
  /** The number of bytes that are kept of the event that is not complete yet. */
  readonly heldBytes: number
  /** The number of events with data so far. Left out: the events are not read from a stream. */
  readonly events?: number
  push(bytes: Uint8Array): readonly ChatStreamEvent[]
  /**
   * Reads the events at `at` whose chunks have nothing new but a text, as `push` would read them. Returns the offset after them, and `texts` has their texts. The
   * result is `at` when there are none. Left out: the format does not repeat its events.
   */
  readTexts?(bytes: Uint8Array, at: number): number
  readonly texts?: RepeatedEvents
  /** The model that these chunks name. */
  readonly textModel?: unknown
  /** Ends the bytes and returns the events that were still open. Without the format's own end mark there is no `done`. */
  end(): readonly ChatStreamEvent[]
}
