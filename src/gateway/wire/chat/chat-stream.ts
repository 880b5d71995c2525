/** A chat stream in the hub format as values: what every upstream format is read into and every client format is written from. */

import { isObject } from '../../../platform/values/json.ts'

/** One OpenAI `chat.completion.chunk`. Loose: other fields are kept. `usage` is in the last one. */
export interface ChatChunk extends Record<string, unknown> {
  readonly choices?: unknown
  readonly usage?: unknown
}

/** What a stream says of its own failing. */
export interface StreamFault {
  readonly message: string
  /** `error.type` of the wire, e.g. `overloaded_error`; null = not said. */
  readonly type: string | null
  readonly code: string | null
}

/** `code` of a stream that is beyond a bound of this gateway. */
export const refusedCode = 'upstream_stream_error'

/** The fault in a provider's own `error`: an object with message, type and code, or a text. */
export function faultFrom(error: unknown): StreamFault {
  const field = (name: string): string | null => {
    const value = isObject(error) ? error[name] : undefined
    return typeof value === 'string' ? value : typeof value === 'number' ? String(value) : null
  }
  const message = field('message') ?? (typeof error === 'string' ? error : 'The provider broke off the stream.')
  return { message, type: field('type'), code: field('code') }
}

export type ChatStreamEvent =
  /** `outputChars`: characters of output that the provider has sent for it, where that is not what the chunk shows. */
  | { readonly kind: 'chunk'; readonly chunk: ChatChunk; readonly outputChars?: number }
  /** The provider reports a failure; nothing follows it. */
  | { readonly kind: 'error'; readonly fault: StreamFault }
  /** The provider is alive and has nothing to say. */
  | { readonly kind: 'alive' }
  /** The stream's own end mark. */
  | { readonly kind: 'done' }

/**
 * Reads an upstream stream into hub events. One per stream. Any chunking of the same bytes gives the same events; bytes that are not
 * understood are passed over, never thrown at. Chunks are as OpenAI writes them: the role in the first delta, tool calls with an
 * `index` that counts from 0 and their id and name in the first delta of each, `finish_reason` once, usage in the last chunk.
 */
export interface ChatStreamDecoder {
  /** Bytes of an event that is not whole yet. */
  readonly heldBytes: number
  push(bytes: Uint8Array): readonly ChatStreamEvent[]
  /** The bytes have ended: what was still open. An end without the format's own end mark gives no `done`. */
  end(): readonly ChatStreamEvent[]
}
