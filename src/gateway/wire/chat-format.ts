import type { ChatChunk, StreamFault } from './chat-stream.ts'
import type { ClientFormat, ReplyContext, StreamWriter } from './client-format.ts'
import { dataFrame, doneFrame } from './sse.ts'
import { type TokenUsage, usageToOpenAi } from './usage.ts'

/** A comment that clients pass over. */
const keepAlive = ': keep-alive\n\n'

/** OpenAI chat completions: the hub format itself. */
export const chatFormat: ClientFormat = {
  id: 'openai',
  whole: reply => ({ ...reply }),
  writer: context => new ChatWriter(context),
  relayedEnd: (fault, usage) => chatEndFrames(fault, usage),
  keepAlive,
}

/**
 * The last frames of a chat stream that did not end well: an error object with the usage so far, then the end mark. No finish_reason
 * goes before it, which clients would read as success.
 */
function chatEndFrames(fault: StreamFault, usage: TokenUsage): string {
  const error = { message: fault.message, type: fault.type ?? 'api_error', code: fault.code ?? 'upstream_stream_error', param: null }
  const { promptTokens, completionTokens } = usage
  return (
    dataFrame({ error, usage: { prompt_tokens: promptTokens, completion_tokens: completionTokens, total_tokens: promptTokens + completionTokens } }) + doneFrame
  )
}

/** Writes hub chunks as they are, the usage chunk with the bill. */
class ChatWriter implements StreamWriter {
  readonly keepAlive = keepAlive
  readonly #context: ReplyContext

  constructor(context: ReplyContext) {
    this.#context = context
  }

  chunk(chunk: ChatChunk): string {
    const { usage: _told, ...rest } = chunk
    return Array.isArray(rest['choices']) && rest['choices'].length > 0 ? dataFrame(rest) : ''
  }

  finish(usage: TokenUsage): string {
    const { model, nowSeconds, newId, bill } = this.#context
    const last = {
      id: newId('chatcmpl-'),
      object: 'chat.completion.chunk',
      created: nowSeconds,
      model,
      choices: [],
      usage: usageToOpenAi(usage),
      x_br: bill(usage),
    }
    return dataFrame(last) + doneFrame
  }

  fail(fault: StreamFault, usage: TokenUsage): string {
    return chatEndFrames(fault, usage)
  }
}
