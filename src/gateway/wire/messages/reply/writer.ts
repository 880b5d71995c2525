import { isObject } from '../../../../platform/values/json.ts'
import type { ChatChunk, StreamFault } from '../../chat/chat-stream.ts'
import type { ReplyContext, StreamWriter } from '../../client-format.ts'
import type { EventFrame } from '../../sse/repeated-events.ts'
import { noUsage, plainUsage, type TokenUsage } from '../../usage.ts'
import { BlockWriter } from './block-writer.ts'
import { errorFrame, messagesFrame, pingFrame } from './frames.ts'
import { mediaNote } from './reply.ts'
import { firstChoice, stopOf, stopSequenceOf } from './stop-reason.ts'
import { usageToMessages } from './usage.ts'

/**
 * Writes one stream of hub chunks as events of the messages format: exactly one message_start, blocks that never overlap and have rising indexes, one
 * message_delta with the final usage and the bill, and one terminal event.
 */
export class MessagesWriter implements StreamWriter {
  readonly keepAlive = pingFrame
  readonly #context: ReplyContext
  readonly #blocks: BlockWriter
  #started = false
  #ended = false
  #finishReason: unknown = null
  #stopSequence: string | null = null
  #hasRefusal = false

  constructor(context: ReplyContext) {
    this.#context = context
    this.#blocks = new BlockWriter(context)
  }

  chunk(chunk: ChatChunk): string {
    const choice = firstChoice(chunk.choices)
    if (this.#ended || choice === null) return ''
    const written = this.#start() + (isObject(choice['delta']) ? this.#delta(choice['delta']) : '')
    if (typeof choice['finish_reason'] === 'string') this.#finishReason = choice['finish_reason']
    this.#stopSequence = stopSequenceOf(choice, this.#context.request) ?? this.#stopSequence
    return written
  }

  textFrame(): EventFrame | null {
    return this.#started && !this.#ended ? this.#blocks.textFrame : null
  }

  finish(usage: TokenUsage): string {
    if (this.#ended) return ''
    this.#ended = true
    const body = this.#start() + this.#blocks.close()
    const delta = stopOf({
      finishReason: this.#finishReason,
      stopSequence: this.#stopSequence,
      hasToolUse: this.#blocks.hasToolUse,
      hasRefusal: this.#hasRefusal,
    })
    return (
      body +
      messagesFrame({ type: 'message_delta', delta, usage: usageToMessages(usage), x_br: this.#context.bill(usage) }) +
      messagesFrame({ type: 'message_stop' })
    )
  }

  fail(fault: StreamFault): string {
    if (this.#ended) return ''
    this.#ended = true
    return errorFrame(fault)
  }

  /** Writes the message_start. Its usage is the estimate of the prompt; the final message_delta has the actual usage. */
  #start(): string {
    if (this.#started) return ''
    this.#started = true
    const { model, promptTokens, newId } = this.#context
    const usage = usageToMessages(promptTokens > 0 ? plainUsage(promptTokens, 0) : noUsage)
    return messagesFrame({
      type: 'message_start',
      message: { id: newId('msg_'), type: 'message', role: 'assistant', model, content: [], stop_reason: null, stop_sequence: null, usage },
    })
  }

  #delta(delta: Readonly<Record<string, unknown>>): string {
    const { reasoning_content: reasoning, thinking_blocks: thoughts, content, refusal, tool_calls: calls, images, audio } = delta
    let text = ''
    if (typeof reasoning === 'string' && reasoning !== '') text += this.#blocks.thinking(reasoning)
    const said = typeof content === 'string' ? content : ''
    // A signature may arrive together with a later part of a text. It then comes after the text and does not split it.
    const isLate = said !== '' && this.#blocks.isInText
    if (isLate) text += this.#blocks.text(said)
    if (Array.isArray(thoughts)) for (const block of thoughts) text += this.#blocks.thinkingBlock(block)
    if (said !== '' && !isLate) text += this.#blocks.text(said)
    if ((Array.isArray(images) && images.length > 0) || isObject(audio)) text += this.#blocks.note(mediaNote)
    if (typeof refusal === 'string' && refusal !== '') {
      this.#hasRefusal = true
      text += this.#blocks.text(refusal)
    }
    if (Array.isArray(calls)) for (const call of calls) if (isObject(call)) text += this.#blocks.toolCall(call)
    return text
  }
}
