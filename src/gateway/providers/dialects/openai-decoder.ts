import { isObject, parsedObject } from '../../../platform/json.ts'
import type { ChatChunk, ChatStreamEvent } from '../../wire/chat-stream.ts'
import type { SseEvent } from '../../wire/sse-events.ts'
import { EventDecoder } from './event-decoder.ts'
import { ToolCalls } from './openai-tool-calls.ts'

type Fields = Readonly<Record<string, unknown>>

/**
 * Reads the chat stream of an OpenAI-compatible server into hub events, and puts right what such servers do differently: thinking in
 * `reasoning` or in typed parts, tool calls without or with equal indexes, ids and names in pieces or repeated, arguments as objects, the
 * finish reason twice, a whole `message` in place of a delta, answers beside the first.
 */
export class OpenAiStreamDecoder extends EventDecoder {
  readonly #calls = new ToolCalls()
  #hasFinished = false
  #hasSaid = false

  override end(): readonly ChatStreamEvent[] {
    return [...super.end(), ...this.#waiting({})]
  }

  protected read(event: SseEvent): readonly ChatStreamEvent[] {
    if (event.kind === 'comment') return [{ kind: 'alive' }]
    if (event.data.trim() === '[DONE]') return [...this.#waiting({}), { kind: 'done' }]
    const value = parsedObject(event.data)
    if (value === null) return []
    const { error } = value
    if (error !== undefined && error !== null) return [faultOf(error)]
    if (event.name === 'error') return [faultOf(value)]
    return this.#chunk(value)
  }

  #chunk(chunk: ChatChunk): readonly ChatStreamEvent[] {
    const { choices } = chunk
    const choice: unknown = Array.isArray(choices) ? choices.find(each => isObject(each) && (each['index'] === 0 || each['index'] === undefined)) : undefined
    if (!isObject(choice)) return [{ kind: 'chunk', chunk: { ...chunk, choices: [] } }]
    const given = isObject(choice['delta']) ? choice['delta'] : this.#wholeMessage(choice['message'])
    const { delta, calls } = this.#delta(given)
    const finish = typeof choice['finish_reason'] === 'string' && !this.#hasFinished ? choice['finish_reason'] : null
    const isMore = Object.keys(delta).some(name => name !== 'role')
    const before = isMore || finish !== null ? this.#waiting(chunk) : []
    if (finish !== null) this.#hasFinished = true
    const deltaWithCalls = calls.length === 0 ? delta : { ...delta, tool_calls: calls }
    const { message: _whole, ...rest } = choice
    return [...before, { kind: 'chunk', chunk: { ...chunk, choices: [{ ...rest, index: 0, delta: deltaWithCalls, finish_reason: finish }] } }]
  }

  /** Only where nothing has been said before: some servers repeat everything at the end. */
  #wholeMessage(message: unknown): Fields {
    return isObject(message) && !this.#hasSaid ? message : {}
  }

  #delta(given: Fields): { delta: Record<string, unknown>; calls: readonly Fields[] } {
    const { tool_calls: toolCalls, function_call: older, reasoning, reasoning_content: thinking, thinking_blocks: blocks, content, ...others } = given
    const made: readonly unknown[] = Array.isArray(toolCalls) ? toolCalls : isObject(older) ? [{ index: 0, function: older }] : []
    const parts = Array.isArray(content) ? partsOf(content) : null
    const signed = Array.isArray(blocks) ? blocks.filter(isSigned) : []
    const thought = [thinking, reasoning, parts?.thinking, unsignedText(blocks)].find(text => typeof text === 'string' && text !== '')
    const said = parts === null ? content : parts.text
    const delta = Object.fromEntries(
      Object.entries({ ...others, content: said, reasoning_content: thought, thinking_blocks: signed.length === 0 ? null : signed }).filter(
        ([, value]) => value !== undefined && value !== null && value !== '',
      ),
    )
    if (Object.keys(delta).some(name => name !== 'role') || made.length > 0) this.#hasSaid = true
    return { delta, calls: this.#calls.read(made) }
  }

  /** The first delta of a call that was held back, in a chunk of its own. */
  #waiting({ id, created, model }: Fields): readonly ChatStreamEvent[] {
    const calls = this.#calls.flush()
    if (calls.length === 0) return []
    const head = {
      ...(id === undefined ? {} : { id }),
      object: 'chat.completion.chunk',
      ...(created === undefined ? {} : { created }),
      ...(model === undefined ? {} : { model }),
    }
    return [{ kind: 'chunk', chunk: { ...head, choices: [{ index: 0, delta: { tool_calls: calls }, finish_reason: null }] } }]
  }
}

/** Content in typed parts: what is thought and what is said. */
function partsOf(parts: readonly unknown[]): { text: string; thinking: string } {
  let text = ''
  let thinking = ''
  for (const part of parts) {
    if (!isObject(part)) continue
    if (typeof part['text'] === 'string') text += part['text']
    else if (typeof part['thinking'] === 'string') thinking += part['thinking']
    else if (Array.isArray(part['thinking'])) thinking += partsOf(part['thinking']).text
  }
  return { text, thinking }
}

/** A block that can be given back. Gateways of other makers also send what is thought piece by piece as blocks without a signature. */
function isSigned(block: unknown): boolean {
  if (!isObject(block)) return false
  return block['type'] === 'redacted_thinking' || (typeof block['signature'] === 'string' && block['signature'] !== '')
}

function unsignedText(blocks: unknown): string {
  if (!Array.isArray(blocks)) return ''
  return blocks.map(block => (isObject(block) && !isSigned(block) && typeof block['thinking'] === 'string' ? block['thinking'] : '')).join('')
}

function faultOf(error: unknown): ChatStreamEvent {
  const field = (name: string): string | null => {
    const value = isObject(error) ? error[name] : undefined
    return typeof value === 'string' ? value : typeof value === 'number' ? String(value) : null
  }
  const message = field('message') ?? (typeof error === 'string' ? error : 'The provider broke off the stream.')
  return { kind: 'error', fault: { message, type: field('type'), code: field('code') } }
}
