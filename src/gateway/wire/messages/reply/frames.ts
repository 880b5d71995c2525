import type { StreamFault } from '../../chat/chat-stream.ts'
import { knownType } from './error-body.ts'

/** One event of the messages format: its name is in the event and in the data. */
export function messagesFrame(data: Readonly<Record<string, unknown>> & { readonly type: string }): string {
  return `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`
}

/** `content_block_delta` events are nearly all of a stream, so their frame is not written again for each. `name`: the member that holds the text. */
export function textDeltaFrame(
  index: number,
  type: 'text_delta' | 'thinking_delta' | 'input_json_delta',
  name: 'text' | 'thinking' | 'partial_json',
  text: string,
): string {
  return `event: content_block_delta\ndata: {"type":"content_block_delta","index":${index},"delta":{"type":"${type}","${name}":${JSON.stringify(text)}}}\n\n`
}

/** What keeps a silent stream alive. */
export const pingFrame = messagesFrame({ type: 'ping' })

/**
 * The end of a stream that did not end well. It has no message_stop, which clients would read as success. Clients of the format know its type; `code`
 * keeps the provider's own word.
 */
export function errorFrame({ message, type, code }: StreamFault): string {
  const known = knownType(type) ?? (code === 'rate_limit_exceeded' ? 'rate_limit_error' : 'api_error')
  return messagesFrame({ type: 'error', error: { type: known, message, code: code ?? type ?? 'upstream_stream_error' } })
}
