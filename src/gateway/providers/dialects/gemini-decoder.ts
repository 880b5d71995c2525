import { isObject, type JsonObject, objectsOf } from '../../../platform/json.ts'
import type { ChatStreamEvent, StreamFault } from '../../wire/chat-stream.ts'
import type { SseEvent } from '../../wire/sse-events.ts'
import { usageToOpenAi } from '../../wire/usage.ts'
import { EventDecoder } from './event-decoder.ts'
import { blockedPromptText, blockedText, finishReason, geminiUsage, PartReader } from './gemini-reply.ts'
import { textOf } from './json-values.ts'

/** What is known of one candidate. */
interface Candidate {
  readonly reader: PartReader
  begun: boolean
  finished: boolean
}

/**
 * Reads a stream of Gemini into hub chunks. The format has no end mark: a candidate that says why it finished is complete. Calls come
 * whole. Usage stands in every chunk that told one; the last one counts.
 */
export class GeminiStreamDecoder extends EventDecoder {
  readonly #candidates = new Map<number, Candidate>()

  protected read(event: SseEvent): readonly ChatStreamEvent[] {
    if (event.kind === 'comment') return [{ kind: 'alive' }]
    const data = firstObject(event.data)
    if (data === null) return []
    if (isObject(data['error'])) return [{ kind: 'error', fault: faultOf(data['error']) }]
    const choices = objectsOf(data['candidates']).flatMap(candidate => this.#choice(candidate, data['responseId']))
    const refusal = blockedPromptText(data)
    if (refusal !== null && choices.length === 0) choices.push(choiceOf(0, { role: 'assistant', content: '', refusal }, 'content_filter'))
    const usage = geminiUsage(data['usageMetadata'])
    if (choices.length === 0 && usage === null) return []
    return [{ kind: 'chunk', chunk: { choices, ...(usage === null ? {} : { usage: usageToOpenAi(usage) }) } }]
  }

  #choice(candidate: JsonObject, responseId: unknown): Record<string, unknown>[] {
    const index = typeof candidate['index'] === 'number' ? candidate['index'] : 0
    const state = this.#stateOf(index)
    if (state.finished) return []
    const said = state.reader.read(candidate['content'], responseId)
    const finish = finishReason(candidate['finishReason'], state.reader.calls > 0)
    const refusal = blockedText(candidate)
    const delta: Record<string, unknown> = {
      ...(state.begun ? {} : { role: 'assistant', content: '' }),
      ...(said.reasoning === '' ? {} : { reasoning_content: said.reasoning }),
      ...(said.content === '' ? {} : { content: said.content }),
      ...(said.blocks.length === 0 ? {} : { thinking_blocks: said.blocks }),
      ...(said.calls.length === 0 ? {} : { tool_calls: said.calls }),
      ...(said.images.length === 0 ? {} : { images: said.images }),
      ...(refusal === null ? {} : { refusal }),
    }
    state.begun = true
    state.finished = finish !== null
    return Object.keys(delta).length === 0 && finish === null ? [] : [choiceOf(index, delta, finish)]
  }

  #stateOf(index: number): Candidate {
    const known = this.#candidates.get(index)
    if (known !== undefined) return known
    const made = { reader: new PartReader(index), begun: false, finished: false }
    this.#candidates.set(index, made)
    return made
  }
}

function choiceOf(index: number, delta: Record<string, unknown>, finish: string | null): Record<string, unknown> {
  return { index, delta, finish_reason: finish }
}

/** Errors come as an object or as a list of one. */
function firstObject(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text)
    const first: unknown = Array.isArray(value) ? value[0] : value
    return isObject(first) ? first : null
  } catch {
    return null
  }
}

function faultOf(error: JsonObject): StreamFault {
  const status = textOf(error['status'])
  return { message: textOf(error['message']) || 'The provider broke off the stream.', type: faultTypes[status] ?? null, code: status === '' ? null : status }
}

/** Its words for a failure as `error.type` of the wire. */
const faultTypes: Readonly<Record<string, string>> = {
  RESOURCE_EXHAUSTED: 'rate_limit_error',
  UNAVAILABLE: 'overloaded_error',
  INVALID_ARGUMENT: 'invalid_request_error',
}
