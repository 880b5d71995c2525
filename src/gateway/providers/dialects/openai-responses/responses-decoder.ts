import { isObject, type JsonObject, objectsOf } from '../../../../platform/values/json.ts'
import type { ChatStreamEvent, StreamFault } from '../../../wire/chat/chat-stream.ts'
import type { SseEvent } from '../../../wire/sse/sse-events.ts'
import { usageToOpenAi } from '../../../wire/usage.ts'
import { EventDecoder, tooMuch } from '../event-decoder.ts'
import { textOf } from '../json-values.ts'
import { eventChars } from '../responses-output.ts'
import { blockOfItem, readableText } from './responses-reasoning.ts'
import { chatCall, finishOf, isCall, usageOfResponse } from './responses-reply.ts'

/** Maximum number of items of a reply. */
const itemsMax = 4096

/** An unfinished call. */
interface OpenCall {
  readonly index: number
  readonly isCustom: boolean
  hasArguments: boolean
}

/** Reads a stream of the Responses API into hub chunks. */
export class ResponsesStreamDecoder extends EventDecoder {
  readonly #calls = new Map<number | null, OpenCall>()
  #head: JsonObject = { id: 'chatcmpl-response', object: 'chat.completion.chunk', created: 0, model: '' }
  #callCount = 0
  #hasRole = false
  /** Items whose text was already sent in deltas. It is not sent again when the item is complete. */
  readonly #heard = new Set<number | null>()
  #lastThought: unknown = null

  protected read(event: SseEvent): readonly ChatStreamEvent[] {
    if (event.kind === 'comment') return [{ kind: 'alive' }]
    const data = this.object(event.data)
    if (data === null) return []
    if (this.#heard.size > itemsMax || this.#calls.size > itemsMax) return [tooMuch(`The provider sent more than ${itemsMax} items in a reply.`)]
    const type = textOf(data['type']) || (event.name ?? '')
    switch (type) {
      case 'response.created':
        return this.#start(data['response'])
      case 'response.queued':
      case 'keepalive':
        return [{ kind: 'alive' }]
      case 'response.output_text.delta':
        return this.#say(data, 'content')
      case 'response.refusal.delta':
        return this.#say(data, 'refusal')
      case 'response.reasoning_summary_text.delta':
      case 'response.reasoning_text.delta':
        return this.#think(data)
      case 'response.output_item.added':
        return isObject(data['item']) && isCall(data['item']) ? this.#openCall(placeOf(data), data['item']) : []
      case 'response.function_call_arguments.delta':
      case 'response.custom_tool_call_input.delta':
        return this.#argue(placeOf(data), textOf(data['delta']))
      case 'response.output_item.done':
        return isObject(data['item']) ? this.#itemDone(placeOf(data), data['item']) : []
      case 'response.completed':
      case 'response.incomplete':
        return this.#finish(isObject(data['response']) ? data['response'] : {}, type)
      case 'response.failed':
        return this.#fail(isObject(data['response']) ? data['response'] : {})
      case 'error':
        return [{ kind: 'error', fault: faultOf(isObject(data['error']) ? data['error'] : data) }]
      default:
        return type.endsWith('.delta') ? unshown(eventChars(data)) : []
    }
  }

  #start(response: unknown): readonly ChatStreamEvent[] {
    if (isObject(response)) {
      const created = typeof response['created_at'] === 'number' ? Math.floor(response['created_at']) : 0
      const id = `chatcmpl-${textOf(response['id']).replace(/^resp_/, '')}`
      this.#head = { id, object: 'chat.completion.chunk', created, model: textOf(response['model']) }
    }
    return this.#hasRole ? [] : [this.#chunk({ content: '' })]
  }

  #say(data: JsonObject, name: 'content' | 'refusal'): readonly ChatStreamEvent[] {
    const text = textOf(data['delta'])
    this.#heard.add(placeOf(data))
    return text === '' ? [] : [this.#chunk({ [name]: text })]
  }

  /** Returns the chunks for thinking. An empty line separates the parts of a summary, as in a whole reply. */
  #think(data: JsonObject): readonly ChatStreamEvent[] {
    const text = textOf(data['delta'])
    if (text === '') return []
    const part = `${placeOf(data)}/${String(data['summary_index'] ?? data['content_index'])}`
    const gap = this.#lastThought === null || this.#lastThought === part ? '' : '\n\n'
    this.#lastThought = part
    this.#heard.add(placeOf(data))
    return [this.#chunk({ reasoning_content: gap + text })]
  }

  #openCall(place: number | null, item: JsonObject): readonly ChatStreamEvent[] {
    const call = { index: this.#callCount++, isCustom: item['type'] === 'custom_tool_call', hasArguments: false }
    this.#calls.set(place, call)
    const made = chatCall(item)
    call.hasArguments = textOf(item['arguments']) !== '' || textOf(item['input']) !== ''
    return [this.#chunk({ tool_calls: [{ index: call.index, ...made }] })]
  }

  #argue(place: number | null, text: string): readonly ChatStreamEvent[] {
    const call = this.#calls.get(place)
    if (call === undefined || text === '') return []
    call.hasArguments = true
    const said = call.isCustom ? { custom: { input: text } } : { function: { arguments: text } }
    return [this.#chunk({ tool_calls: [{ index: call.index, ...said }] })]
  }

  /** Returns the chunks for a complete item: the parts that the provider sends only now, and the signature of its thinking. */
  #itemDone(place: number | null, item: JsonObject): readonly ChatStreamEvent[] {
    if (isCall(item)) {
      const opening = this.#calls.has(place) ? [] : this.#openCall(place, item)
      const late = this.#calls.get(place)?.hasArguments === true ? [] : this.#argue(place, textOf(item['arguments']) || textOf(item['input']))
      return [...opening, ...late]
    }
    if (item['type'] === 'message') return this.#heard.has(place) ? [] : messageText(item).map(said => this.#chunk(said))
    if (item['type'] !== 'reasoning') return []
    const text = readableText(item)
    const said = this.#heard.has(place) || text === '' ? [] : this.#think({ output_index: place, delta: text })
    const block = blockOfItem(item)
    // `outputChars` is 0 because the text of the block has already passed.
    return block === null ? said : [...said, { ...this.#chunk({ thinking_blocks: [block] }), outputChars: 0 }]
  }

  #finish(response: JsonObject, type: string): readonly ChatStreamEvent[] {
    const ended = type === 'response.incomplete' ? { ...response, status: 'incomplete' } : response
    const finish = this.#chunk({}, finishOf(ended, this.#callCount > 0))
    return [finish, ...this.#usage(response), { kind: 'done' }]
  }

  /** Reports the usage and then the failure, because a failed response is charged too. */
  #fail(response: JsonObject): readonly ChatStreamEvent[] {
    return [...this.#usage(response), { kind: 'error', fault: faultOf(response['error']) }]
  }

  #usage(response: JsonObject): readonly ChatStreamEvent[] {
    const usage = usageOfResponse(response['usage'])
    return usage === null ? [] : [{ kind: 'chunk', chunk: { ...this.#head, choices: [], usage: usageToOpenAi(usage) } }]
  }

  #chunk(delta: JsonObject, finishReason: string | null = null): Extract<ChatStreamEvent, { kind: 'chunk' }> {
    const role = this.#hasRole ? {} : { role: 'assistant' }
    this.#hasRole = true
    return { kind: 'chunk', chunk: { ...this.#head, choices: [{ index: 0, delta: { ...role, ...delta }, logprobs: null, finish_reason: finishReason }] } }
  }
}

/** Returns the index of an item. An index that is not a number becomes null, because it could be a text of any length. */
const placeOf = ({ output_index: place }: JsonObject): number | null => (typeof place === 'number' ? place : null)

/** Reports output that the hub format cannot represent. */
function unshown(chars: number): readonly ChatStreamEvent[] {
  return chars === 0 ? [] : [{ kind: 'chunk', chunk: { choices: [] }, outputChars: chars }]
}

/** Returns the parts of a message that arrived in one piece. */
function messageText(item: JsonObject): readonly JsonObject[] {
  return objectsOf(item['content']).flatMap(part => {
    const text = textOf(part['text'])
    const refusal = textOf(part['refusal'])
    return [...(text === '' ? [] : [{ content: text }]), ...(refusal === '' ? [] : [{ refusal }])]
  })
}

function faultOf(error: unknown): StreamFault {
  const said = isObject(error) ? error : {}
  const text = (name: string): string | null => textOf(said[name]) || null
  const code = text('code')
  const type = code === 'rate_limit_exceeded' ? 'rate_limit_error' : code === 'server_is_overloaded' ? 'overloaded_error' : null
  return { message: text('message') ?? 'The provider broke off the stream.', type, code }
}
