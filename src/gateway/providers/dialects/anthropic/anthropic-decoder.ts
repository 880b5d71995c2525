import { isObject, type JsonObject } from '../../../../platform/values/json.ts'
import { type ChatStreamEvent, refusedCode } from '../../../wire/chat/chat-stream.ts'
import { mergeMessagesUsage } from '../../../wire/messages/reply/usage.ts'
import { GrowingText } from '../../../wire/sse/growing-text.ts'
import type { SseEvent } from '../../../wire/sse/sse-events.ts'
import { type TokenUsage, usageToOpenAi } from '../../../wire/usage.ts'
import { blockChars, deltaChars } from '../anthropic-output.ts'
import { EventDecoder, tooMuch } from '../event-decoder.ts'
import { textOf } from '../json-values.ts'
import { replyToolName } from './anthropic-format.ts'
import { annotationOf, finishOf, refusalOf, signedThinking } from './anthropic-reply.ts'

/** Maximum number of concurrently open blocks. A real stream has one. */
const openBlocksMax = 64
/** Maximum length of the signature of a block. */
const signatureMaxChars = 1024 * 1024
/** Maximum number of argument characters from the start events of all open blocks. */
const inputMaxChars = 4 * 1024 * 1024

/** An unfinished block. */
interface OpenBlock {
  readonly kind: 'thinking' | 'call' | 'reply' | 'other'
  readonly thinking: GrowingText
  signature: string
  /** The index of this call among the calls of the reply. */
  readonly callIndex: number
  /** Arguments from the start event, as JSON. They are sent only if no delta contains arguments. */
  readonly input: string
  hasArguments: boolean
}

/**
 * Reads a stream of the messages format into hub chunks. Thinking is sent as it arrives, and once more, complete and signed, when its block ends. The
 * first chunk contains the known part of the prompt's usage. The chunk with the finish reason and all later chunks contain the final usage.
 */
export class AnthropicStreamDecoder extends EventDecoder {
  readonly #open = new Map<number | null, OpenBlock>()
  #inputChars = 0
  #usage: TokenUsage | null = null
  #calls = 0

  protected read(event: SseEvent): readonly ChatStreamEvent[] {
    if (event.kind === 'comment') return [{ kind: 'alive' }]
    const data = this.object(event.data)
    if (data === null) return []
    switch (data['type'] ?? event.name) {
      case 'message_start':
        return this.#start(data['message'])
      case 'content_block_start':
        return isObject(data['content_block']) ? this.#openBlock(placeOf(data['index']), data['content_block']) : []
      case 'content_block_delta':
        return isObject(data['delta']) ? this.#delta(this.#open.get(placeOf(data['index'])), data['delta']) : []
      case 'content_block_stop':
        return this.#closeBlock(placeOf(data['index']))
      case 'message_delta':
        return this.#finish(data)
      case 'message_stop':
        return [{ kind: 'done' }]
      case 'ping':
        return [{ kind: 'alive' }]
      case 'error':
        return [{ kind: 'error', fault: faultOf(data['error']) }]
      default:
        return []
    }
  }

  #start(message: unknown): readonly ChatStreamEvent[] {
    this.#usage = isObject(message) ? mergeMessagesUsage(this.#usage, message['usage']) : this.#usage
    const opening = { index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }
    const named = isObject(message) && typeof message['model'] === 'string' ? { model: message['model'] } : {}
    return [{ kind: 'chunk', chunk: { ...named, choices: [opening], ...this.#usageField() } }]
  }

  #openBlock(index: number | null, block: JsonObject): readonly ChatStreamEvent[] {
    if (this.#open.size >= openBlocksMax) return [tooMuch(`The provider opened more than ${openBlocksMax} blocks and did not close them.`)]
    const kind = kindOf(block)
    const callIndex = kind === 'call' ? this.#calls++ : -1
    const { thinking, signature } = block
    const input = kind === 'call' || kind === 'reply' ? JSON.stringify(isObject(block['input']) ? block['input'] : {}) : ''
    const open = { kind, thinking: new GrowingText(), signature: kind === 'thinking' ? textOf(signature) : '', callIndex, input, hasArguments: false }
    if (open.signature.length > signatureMaxChars) return [tooMuch('The provider sent a signature that is too long.')]
    if (kind === 'thinking') open.thinking.append(textOf(thinking))
    this.#inputChars += input.length - (this.#open.get(index)?.input.length ?? 0)
    if (this.#inputChars > inputMaxChars) return [tooMuch(`The provider opened calls with more than ${inputMaxChars} characters of arguments.`)]
    this.#open.set(index, open)
    if (kind === 'call') {
      const call = { index: callIndex, id: block['id'], type: 'function', function: { name: block['name'], arguments: '' } }
      return [delta({ tool_calls: [call] })]
    }
    if (block['type'] === 'redacted_thinking') return [delta({ thinking_blocks: signedThinking(block) })]
    if (block['type'] === 'text' && textOf(block['text']) !== '') return [delta({ content: block['text'] })]
    if (kind === 'other') return unshown(blockChars(block))
    return textOf(thinking) === '' ? [] : [delta({ reasoning_content: thinking })]
  }

  #delta(block: OpenBlock | undefined, said: JsonObject): readonly ChatStreamEvent[] {
    switch (said['type']) {
      case 'text_delta':
        return textOf(said['text']) === '' ? [] : [delta({ content: said['text'] })]
      case 'thinking_delta':
        if (block?.kind === 'thinking') block.thinking.append(textOf(said['thinking']))
        return textOf(said['thinking']) === '' ? [] : [delta({ reasoning_content: said['thinking'] })]
      case 'signature_delta':
        if (block?.kind !== 'thinking') return []
        block.signature += textOf(said['signature'])
        return block.signature.length > signatureMaxChars ? [tooMuch('The provider sent a signature that is too long.')] : []
      case 'input_json_delta':
        return block === undefined || block.kind === 'other' || block.kind === 'thinking'
          ? unshown(deltaChars(said))
          : argumentsDelta(block, textOf(said['partial_json']))
      case 'citations_delta': {
        const annotations = isObject(said['citation']) ? annotationOf(said['citation']) : []
        return annotations.length === 0 ? [] : [delta({ annotations })]
      }
      default:
        return unshown(deltaChars(said))
    }
  }

  #closeBlock(index: number | null): readonly ChatStreamEvent[] {
    const block = this.#open.get(index)
    this.#open.delete(index)
    if (block === undefined) return []
    this.#inputChars -= block.input.length
    if (block.kind === 'thinking') {
      const signed = signedThinking({ type: 'thinking', thinking: block.thinking.text, signature: block.signature })
      // `outputChars` is 0 because the text of the block has already passed.
      return signed.length === 0 ? [] : [{ ...delta({ thinking_blocks: signed }), outputChars: 0 }]
    }
    return block.hasArguments ? [] : argumentsDelta(block, block.input)
  }

  #finish(event: JsonObject): readonly ChatStreamEvent[] {
    this.#usage = mergeMessagesUsage(this.#usage, event['usage'])
    const stop = isObject(event['delta']) ? event['delta'] : {}
    if (typeof stop['stop_reason'] !== 'string') return this.#usage === null ? [] : [{ kind: 'chunk', chunk: { choices: [], ...this.#usageField() } }]
    const refusal = stop['stop_reason'] === 'refusal' ? { refusal: refusalOf(stop['stop_details']) } : {}
    return [{ kind: 'chunk', chunk: { choices: [{ index: 0, delta: refusal, ...finishOf(stop, this.#calls > 0) }], ...this.#usageField() } }]
  }

  #usageField(): { usage?: Record<string, unknown> } {
    return this.#usage === null ? {} : { usage: usageToOpenAi(this.#usage) }
  }
}

/** Returns the index of a block. An index that is not a number becomes null, because it could be a text of any length. */
const placeOf = (index: unknown): number | null => (typeof index === 'number' ? index : null)

function kindOf(block: JsonObject): OpenBlock['kind'] {
  if (block['type'] === 'thinking') return 'thinking'
  if (block['type'] !== 'tool_use') return 'other'
  return block['name'] === replyToolName ? 'reply' : 'call'
}

/** Returns the event for the arguments of a call. When the called tool represents the reply, its arguments are the text of the reply. */
function argumentsDelta(block: OpenBlock, text: string): readonly ChatStreamEvent[] {
  if (text === '' || block.kind === 'other' || block.kind === 'thinking') return []
  block.hasArguments = true
  return [block.kind === 'reply' ? delta({ content: text }) : delta({ tool_calls: [{ index: block.callIndex, function: { arguments: text } }] })]
}

/** Reports output that the hub format cannot represent. */
function unshown(chars: number): readonly ChatStreamEvent[] {
  return chars === 0 ? [] : [{ kind: 'chunk', chunk: { choices: [] }, outputChars: chars }]
}

function delta(said: Record<string, unknown>): Extract<ChatStreamEvent, { kind: 'chunk' }> {
  return { kind: 'chunk', chunk: { choices: [{ index: 0, delta: said, finish_reason: null }] } }
}

function faultOf(error: unknown): { message: string; type: string | null; code: string | null } {
  const text = (name: string): string | null => (isObject(error) && typeof error[name] === 'string' ? error[name] : null)
  return { message: text('message') ?? 'The provider broke off the stream.', type: text('type'), code: text('code') === refusedCode ? refusedCode : null }
}
