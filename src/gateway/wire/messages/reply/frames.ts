import type { StreamFault } from '../../chat/chat-stream.ts'
import type { EventFrame } from '../../sse/repeated-events.ts'
import { knownType } from './error-body.ts'

/** Returns one event of the messages format. Its name is in the event and in the data. */
export function messagesFrame(data: Readonly<Record<string, unknown>> & { readonly type: string }): string {
  return `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`
}

/**
 * Returns a `content_block_delta` event. Nearly all events of a stream are such deltas, so only the text is serialised for each. `name` is the member that has
 * the text.
 */
export function textDeltaFrame(
  index: number,
  type: 'text_delta' | 'thinking_delta' | 'input_json_delta',
  name: 'text' | 'thinking' | 'partial_json',
  text: string,
): string {
  return `event: content_block_delta\ndata: {"type":"content_block_delta","index":${index},"delta":{"type":"${type}","${name}":${JSON.stringify(text)}}}\n\n`
}

/** Returns the bytes before and after the text in a `content_block_delta` event of a text. */
export function textFrameAt(index: number): EventFrame {
  const event = textDeltaFrame(index, 'text_delta', 'text', '')
  const at = event.lastIndexOf('""') + 1
  return { before: Buffer.from(event.slice(0, at)), after: Buffer.from(event.slice(at)) }
}

/** The event that keeps a silent stream open. */
export const pingFrame = messagesFrame({ type: 'ping' })

/**
 * Returns the end of a failed stream. It has no message_stop, because clients would read that as success. Clients of the format know its type; `code` keeps the
 * provider's own code.
 */
export function errorFrame({ message, type, code }: StreamFault): string {
  const known = knownType(type) ?? (code === 'rate_limit_exceeded' ? 'rate_limit_error' : 'api_error')
  return messagesFrame({ type: 'error', error: { type: known, message, code: code ?? type ?? 'upstream_stream_error' } })
}
