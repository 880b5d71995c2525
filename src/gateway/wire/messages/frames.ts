import type { StreamFault } from '../chat-stream.ts'

/** One event of the messages format: its name stands in the event and in the data. */
export function messagesFrame(data: Readonly<Record<string, unknown>> & { readonly type: string }): string {
  return `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`
}

/** What keeps a silent stream alive. */
export const pingFrame = messagesFrame({ type: 'ping' })

/** The end of a stream that did not end well. No message_stop goes with it, which clients would read as success. */
export function errorFrame({ message, type, code }: StreamFault): string {
  return messagesFrame({ type: 'error', error: { type: type ?? 'api_error', message, code: code ?? 'upstream_stream_error' } })
}
