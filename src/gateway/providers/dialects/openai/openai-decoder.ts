import { isObject } from '../../../../platform/values/json.ts'
import { errorOfChoices } from '../../../wire/chat/chat-choice-error.ts'
import { type ChatStreamEvent, faultFrom } from '../../../wire/chat/chat-stream.ts'
import { outputChars, spokenBytes } from '../../../wire/output-chars.ts'
import type { RepeatedEvents } from '../../../wire/sse/repeated-events.ts'
import type { SseEvent } from '../../../wire/sse/sse-events.ts'
import { EventDecoder } from '../event-decoder.ts'
import { ToolCalls } from './openai-tool-calls.ts'
import { RepeatedDelta } from './repeated-delta.ts'

type Fields = Readonly<Record<string, unknown>>

/**
 * Reads the chat stream of an OpenAI-compatible server into hub events. It corrects the deviations of such servers. Thinking may be in `reasoning` or
 * in typed parts. Tool calls may have no index or equal indexes, and their ids and names may come in pieces or repeatedly. Arguments may be objects.
 * The finish reason may come twice. A whole `message` may replace a delta. There may be answers in addition to the first.
 */
export class OpenAiStreamDecoder extends EventDecoder {
  readonly #calls = new ToolCalls()
  readonly #repeated = new RepeatedDelta()
  #hasFinished = false
  #hasSaid = false

  get texts(): RepeatedEvents {
    return this.#repeated.events
  }

  get textModel(): unknown {
    return this.#repeated.model
  }

  readTexts(bytes: Uint8Array, at: number): number {
    if (!this.atBoundary || this.#calls.isWaiting) return at
    const end = this.#repeated.readEvents(bytes, at)
    if (end > at) this.passed(this.texts.count)
    return end
  }

  override end(): readonly ChatStreamEvent[] {
    return [...super.end(), ...this.#waiting({})]
  }

  protected read(event: SseEvent): readonly ChatStreamEvent[] {
    if (event.kind === 'comment') return [{ kind: 'alive' }]
    const repeated = event.name === undefined ? this.#repeated.read(event.data) : null
    if (repeated !== null) return [...this.#waiting(repeated), { kind: 'chunk', chunk: repeated, outputChars: spokenBytes(this.#repeated.text) }]
    if (event.data.trimStart().startsWith('[DONE]')) return [...this.#waiting({}), { kind: 'done' }]
    const value = this.object(event.data)
    if (value === null) return []
    const { error } = value
    if (error !== undefined && error !== null) return [faultOf(error)]
    if (event.name === 'error') return [faultOf(value)]
    const ofChoice = errorOfChoices(value['choices'])
    if (ofChoice !== null) return [faultOf(ofChoice)]
    const mayRepeat = event.name === undefined && hasOneDelta(value)
    const made = this.#chunk(value)
    if (mayRepeat && made.length === 1) this.#repeated.learn(event.data, value)
    return made
  }

  /** Corrects a chunk in place. The parsed value has no other user, and this code runs for every chunk of every translated stream. */
  #chunk(chunk: Record<string, unknown>): readonly ChatStreamEvent[] {
    const { choices } = chunk
    const choice: unknown = Array.isArray(choices) ? choices.find(each => isObject(each) && (each['index'] === 0 || each['index'] === undefined)) : undefined
    const heardChars = Array.isArray(choices) ? charsOfChoices(choices) : 0
    if (!isObject(choice)) return [{ kind: 'chunk', chunk: { ...chunk, choices: [] }, outputChars: heardChars }]
    const { delta, calls, isMore } = this.#delta(isObject(choice['delta']) ? choice['delta'] : this.#wholeMessage(choice['message']))
    const finish = typeof choice['finish_reason'] === 'string' && !this.#hasFinished ? choice['finish_reason'] : null
    const before = isMore || finish !== null ? this.#waiting(chunk) : nothing
    if (finish !== null) this.#hasFinished = true
    if (calls.length > 0) delta['tool_calls'] = calls
    if ('message' in choice) delete choice['message']
    choice['index'] = 0
    choice['delta'] = delta
    choice['finish_reason'] = finish
    chunk['choices'] = [choice]
    return [...before, { kind: 'chunk', chunk, outputChars: heardChars }]
  }

  /** Returns a whole message if nothing was sent before it. Some servers repeat everything at the end. */
  #wholeMessage(message: unknown): Fields {
    return isObject(message) && !this.#hasSaid ? message : {}
  }

  #delta(given: Fields): { delta: Record<string, unknown>; calls: readonly Fields[]; isMore: boolean } {
    const { tool_calls: toolCalls, function_call: older, reasoning, reasoning_content: thinking, thinking_blocks: blocks, content } = given
    const made: readonly unknown[] = Array.isArray(toolCalls) ? toolCalls : isObject(older) ? [{ index: 0, function: older }] : nothing
    const parts = Array.isArray(content) ? partsOf(content) : null
    const signed = Array.isArray(blocks) ? blocks.filter(isSigned) : nothing
    const delta: Record<string, unknown> = {}
    for (const name of Object.keys(given)) if (!readNames.has(name) && !isEmpty(given[name])) delta[name] = given[name]
    const said = parts === null ? content : parts.text
    if (!isEmpty(said)) delta['content'] = said
    const thought = [thinking, reasoning, parts?.thinking, unsignedText(blocks)].find(text => typeof text === 'string' && text !== '')
    if (thought !== undefined) delta['reasoning_content'] = thought
    if (signed.length > 0) delta['thinking_blocks'] = signed
    const isMore = Object.keys(delta).some(name => name !== 'role')
    if (isMore || made.length > 0) this.#hasSaid = true
    return { delta, calls: made.length === 0 ? nothing : this.#calls.read(made), isMore }
  }

  /** Returns a chunk with the delayed first delta of a call. */
  #waiting({ id, created, model }: Fields): readonly ChatStreamEvent[] {
    const calls = this.#calls.flush()
    if (calls.length === 0) return []
    const head = {
      ...(id === undefined ? {} : { id }),
      object: 'chat.completion.chunk',
      ...(created === undefined ? {} : { created }),
      ...(model === undefined ? {} : { model }),
    }
    return [{ kind: 'chunk', chunk: { ...head, choices: [{ index: 0, delta: { tool_calls: calls }, finish_reason: null }] }, outputChars: 0 }]
  }
}

/** Whether the chunk contains only the delta of one choice. */
function hasOneDelta({ choices }: Fields): boolean {
  const [choice, second] = Array.isArray(choices) ? choices : nothing
  return second === undefined && isObject(choice) && isObject(choice['delta']) && !('message' in choice)
}

/** Counts everything that the provider has sent, including output that the hub format cannot represent, because all of it is charged. */
function charsOfChoices(choices: readonly unknown[]): number {
  let chars = 0
  for (const choice of choices) if (isObject(choice)) chars += outputChars(choice['delta'] ?? choice['message'])
  return chars
}

const nothing: readonly never[] = Object.freeze([])

/** Names that this code reads. `__proto__` is included because it is never a real field. */
const readNames: ReadonlySet<string> = new Set(['tool_calls', 'function_call', 'reasoning', 'reasoning_content', 'thinking_blocks', 'content', '__proto__'])

const isEmpty = (value: unknown): boolean => value === undefined || value === null || value === ''

/** Splits content in typed parts into thinking and text. */
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

/** Returns whether a block can be sent back. Other gateways also send thinking in pieces, as blocks without a signature. */
function isSigned(block: unknown): boolean {
  if (!isObject(block)) return false
  return block['type'] === 'redacted_thinking' || (typeof block['signature'] === 'string' && block['signature'] !== '')
}

function unsignedText(blocks: unknown): string {
  if (!Array.isArray(blocks)) return ''
  return blocks.map(block => (isObject(block) && !isSigned(block) && typeof block['thinking'] === 'string' ? block['thinking'] : '')).join('')
}

const faultOf = (error: unknown): ChatStreamEvent => ({ kind: 'error', fault: faultFrom(error) })
