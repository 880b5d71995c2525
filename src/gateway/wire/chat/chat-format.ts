import type { ClientFormat, ReplyContext, StreamWriter } from '../client-format.ts'
import { dataFrame, doneFrame } from '../sse/sse.ts'
import { type TokenUsage, usageFromOpenAi, usageToOpenAi } from '../usage.ts'
import type { ChatChunk, StreamFault } from './chat-stream.ts'

/** A comment, which clients ignore. */
const keepAlive = ': keep-alive\n\n'

/** OpenAI chat completions: the hub format itself. */
export const chatFormat: ClientFormat = {
  id: 'openai',
  whole: (reply, usage, { model, nowSeconds, newId }) => ({
    id: newId('chatcmpl-'),
    object: 'chat.completion',
    created: nowSeconds,
    ...reply,
    model,
    usage: usageFromOpenAi(reply['usage']) === null ? usageToOpenAi(usage) : reply['usage'],
  }),
  writer: context => new ChatWriter(context),
  relayedEnd: (fault, usage, context) => chatEndFrames(fault, usage, context),
  keepAlive,
}

/** True: the caller asked for a stream without the usage chunk. */
export function withholdsUsage({ stream_options: options }: Readonly<Record<string, unknown>>): boolean {
  return typeof options === 'object' && options !== null && 'include_usage' in options && options.include_usage === false
}

/**
 * Returns the last frames of a chat stream that failed: an error object with the usage so far and its price, then the end mark. It has no finish_reason,
 * because clients would read that as success.
 */
function chatEndFrames(fault: StreamFault, usage: TokenUsage, { bill }: ReplyContext): string {
  const error = { message: fault.message, type: fault.type ?? 'api_error', code: fault.code ?? 'upstream_stream_error', param: null }
  const { promptTokens, completionTokens } = usage
  const used = { prompt_tokens: promptTokens, completion_tokens: completionTokens, total_tokens: promptTokens + completionTokens }
  return dataFrame({ error, usage: used, x_br: bill(usage) }) + doneFrame
}

/** Writes hub chunks with one id and the catalog's id of the model, and at the end the usage with the bill. */
class ChatWriter implements StreamWriter {
  readonly keepAlive = keepAlive
  readonly #context: ReplyContext
  #id: string | null = null
  #created: number | null = null

  constructor(context: ReplyContext) {
    this.#context = context
  }

  chunk(chunk: ChatChunk): string {
    const { usage: _told, id, object: _object, created, model: _theirs, ...rest } = chunk
    this.#id ??= typeof id === 'string' && id !== '' ? id : null
    this.#created ??= typeof created === 'number' ? created : null
    return Array.isArray(rest['choices']) && rest['choices'].length > 0 ? dataFrame({ ...this.#head(), ...rest }) : ''
  }

  finish(usage: TokenUsage): string {
    const { request, bill } = this.#context
    if (withholdsUsage(request)) return doneFrame
    return dataFrame({ ...this.#head(), choices: [], usage: usageToOpenAi(usage), x_br: bill(usage) }) + doneFrame
  }

  fail(fault: StreamFault, usage: TokenUsage): string {
    return chatEndFrames(fault, usage, this.#context)
  }

  #head(): Record<string, unknown> {
    const { model, nowSeconds, newId } = this.#context
    this.#id ??= newId('chatcmpl-')
    this.#created ??= nowSeconds
    return { id: this.#id, object: 'chat.completion.chunk', created: this.#created, model }
  }
}
