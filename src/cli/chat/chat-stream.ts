import { createParser } from 'eventsource-parser'
import type { GatewayClient } from '../../agents/toolkit/gateway-client.ts'
import { CommandError } from '../command-error.ts'

/** One message of a conversation. */
export interface ChatMessage {
  readonly role: 'system' | 'user' | 'assistant'
  readonly content: string
}

/** The parameters of a chat. */
export interface ChatParams {
  readonly model: string
  readonly maxTokens?: number
}

interface Chunk {
  readonly choices?: readonly { readonly delta?: { readonly content?: string | null }; readonly finish_reason?: string | null }[]
  readonly error?: { readonly message?: string; readonly code?: string }
}

/** Returns the body of the request. */
export function bodyOf(messages: readonly ChatMessage[], { model, maxTokens }: ChatParams): object {
  return { model, messages, ...(maxTokens === undefined ? {} : { max_tokens: maxTokens }) }
}

/** Control characters except line feed and tab, and characters that change the direction of text. */
const steering = /(?![\n\t])[\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu

/**
 * Prints the reply to stdout as it arrives, and returns its text. The text that is printed cannot control the terminal. Throws CommandError when the stream
 * ends with an error or before its end.
 */
export async function streamReply(client: GatewayClient, messages: readonly ChatMessage[], params: ChatParams, signal?: AbortSignal): Promise<string> {
  const json = { ...bodyOf(messages, params), stream: true }
  const reply = await client.send('POST', '/v1/chat/completions', { json, ...(signal === undefined ? {} : { signal }) })
  let text = ''
  let isDone = false
  let failure: CommandError | null = null
  const parser = createParser({
    onEvent({ data }) {
      if (data === '[DONE]') isDone = true
      else if (data !== '') take(JSON.parse(data) as Chunk)
    },
  })
  const take = ({ choices, error }: Chunk): void => {
    if (error !== undefined) failure = new CommandError(error.message ?? 'the reply ended with an error.', { code: error.code ?? 'failed' })
    const part = choices?.[0]?.delta?.content ?? ''
    text += part
    if (part !== '') process.stdout.write(part.replace(steering, ' '))
  }
  const decoder = new TextDecoder()
  try {
    for await (const bytes of reply.body ?? []) parser.feed(decoder.decode(bytes, { stream: true }))
  } finally {
    if (text !== '' && !text.endsWith('\n')) process.stdout.write('\n')
  }
  if (failure !== null) throw failure
  if (!isDone) throw new CommandError('the reply ended before it was complete. Try again.', { code: 'connection_lost' })
  return text
}
