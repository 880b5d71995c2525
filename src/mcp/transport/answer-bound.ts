/** Bounds the answer of one POST to /mcp. The answers that the SDKs make to messages pass through here on their way to the client. */

import { surfaceErrorCodes } from '../surface.ts'
import type { RefusedMessage } from './message-rate.ts'

/**
 * Maximum number of bytes of all answers to one POST. Pictures do not count: their caller has paid for each of them, and their tool has its own
 * bound.
 */
export const answerBytesMax = 2 * 1024 * 1024
/**
 * Maximum size of the frames that are always sent. These are frames that are not answers, such as keep-alives, and errors that replace an answer that
 * is too large.
 */
const smallFrameBytes = 1024

export interface AnswerParams {
  /** The JSON value of the body that is answered. */
  readonly body: unknown
  /** Refusals that are sent before the answers. */
  readonly refused: readonly RefusedMessage[]
  /** Returns the number of bytes beyond `answerBytesMax` that may be sent, as known at this moment. */
  extraBytes(): number
}

/** Returns the answer within its bound. An answer that does not fit is replaced with an error, and a notification that does not fit is dropped. */
export async function boundedAnswer(answer: Response, params: AnswerParams): Promise<Response> {
  const { status, headers } = answer
  const mediaType = headers.get('content-type') ?? ''
  if (mediaType.startsWith('text/event-stream') && answer.body !== null) return new Response(boundedEvents(answer.body, params), { status, headers })
  // With status 202, the messages that ran expect no answer. The refusals of the other messages are the whole reply.
  if (params.refused.length > 0 && status === 202) return Response.json(params.refused)
  if (!mediaType.startsWith('application/json')) return answer
  const text = await answer.text()
  if (Buffer.byteLength(text) <= answerBytesMax + params.extraBytes()) return new Response(text, { status, headers })
  return Response.json(tooLong(idOf(params.body)))
}

/** Returns the events within the bound. The SDKs write each event in one piece. */
function boundedEvents(events: ReadableStream<Uint8Array>, { refused, extraBytes }: AnswerParams): ReadableStream<Uint8Array> {
  const reader = events.getReader()
  let bytes = 0
  const fitting = (event: Uint8Array): Uint8Array | null => {
    if (bytes + event.length > answerBytesMax + extraBytes() && event.length > smallFrameBytes) return inPlaceOf(event)
    bytes += event.length
    return event
  }
  return new ReadableStream<Uint8Array>({
    start(controller) {
      for (const message of refused) controller.enqueue(eventOf(message))
    },
    async pull(controller) {
      for (;;) {
        const { done, value } = await reader.read()
        if (done) return controller.close()
        const event = fitting(value)
        if (event !== null) return controller.enqueue(event)
      }
    },
    cancel: reason => reader.cancel(reason),
  })
}

/** Returns the error for an answer that did not fit. Returns null for a notification, because a notification expects no answer. */
function inPlaceOf(event: Uint8Array): Uint8Array | null {
  const [, data] = /^data: (.*)$/m.exec(new TextDecoder().decode(event)) ?? []
  const id = data === undefined ? null : idOf(JSON.parse(data))
  return id === null ? null : eventOf(tooLong(id))
}

const encoder = new TextEncoder()
const eventOf = (message: object): Uint8Array => encoder.encode(`event: message\ndata: ${JSON.stringify(message)}\n\n`)

function idOf(message: unknown): string | number | null {
  if (typeof message !== 'object' || message === null || !('id' in message)) return null
  return typeof message.id === 'string' || typeof message.id === 'number' ? message.id : null
}

function tooLong(id: string | number | null): object {
  const message = `payload_too_large: The answers to one POST have at most ${answerBytesMax} bytes in all, and this one did not fit. Send fewer messages in one POST, or ask for less in one message.`
  return { jsonrpc: '2.0', id, error: { code: surfaceErrorCodes.refused, message, data: { code: 'payload_too_large', message, status: 413 } } }
}
