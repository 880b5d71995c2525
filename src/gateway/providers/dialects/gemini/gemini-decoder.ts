import { isObject, type JsonObject, objectsOf } from '../../../../platform/values/json.ts'
import { type ChatStreamEvent, refusedCode, type StreamFault } from '../../../wire/chat/chat-stream.ts'
import { outputChars } from '../../../wire/output-chars.ts'
import type { SseEvent } from '../../../wire/sse/sse-events.ts'
import { usageToOpenAi } from '../../../wire/usage.ts'
import { EventDecoder } from '../event-decoder.ts'
import { textOf } from '../json-values.ts'
import { blockedPromptText, blockedText, finishReason, geminiUsage, PartReader } from './gemini-reply.ts'

/** Maximum number of candidates of one reply. Further candidates are ignored. */
const candidatesMax = 128

/** The state of one candidate. */
interface Candidate {
  readonly reader: PartReader
  begun: boolean
  finished: boolean
}

/**
 * Reads a stream of Gemini into hub chunks. The format has no end mark. A candidate is complete when it has a finish reason. Calls arrive complete.
 * Several chunks may report usage, and the last report counts.
 */
export class GeminiStreamDecoder extends EventDecoder {
  readonly #candidates = new Map<number, Candidate>()

  protected read(event: SseEvent): readonly ChatStreamEvent[] {
    if (event.kind === 'comment') return [{ kind: 'alive' }]
    const data = event.data.trimStart().startsWith('[') ? firstObject(event.data) : this.object(event.data)
    if (data === null) return []
    if (isObject(data['error'])) return [{ kind: 'error', fault: faultOf(data['error']) }]
    const choices = objectsOf(data['candidates']).flatMap(candidate => this.#choice(candidate, data['responseId']))
    const refusal = blockedPromptText(data)
    if (refusal !== null && choices.length === 0) choices.push(choiceOf(0, { role: 'assistant', content: '', refusal }, 'content_filter'))
    const usage = geminiUsage(data['usageMetadata'])
    const heardChars = Math.max(sentChars(data['candidates']), shownChars(choices))
    if (choices.length === 0 && usage === null && heardChars === 0) return []
    return [{ kind: 'chunk', chunk: { choices, ...(usage === null ? {} : { usage: usageToOpenAi(usage) }) }, outputChars: heardChars }]
  }

  #choice(candidate: JsonObject, responseId: unknown): Record<string, unknown>[] {
    const index = typeof candidate['index'] === 'number' ? candidate['index'] : 0
    const state = this.#stateOf(index)
    if (state === null || state.finished) return []
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

  #stateOf(index: number): Candidate | null {
    const known = this.#candidates.get(index)
    if (known !== undefined) return known
    if (this.#candidates.size >= candidatesMax) return null
    const made = { reader: new PartReader(index), begun: false, finished: false }
    this.#candidates.set(index, made)
    return made
  }
}

/** Counts the output that the provider has sent, including output that the hub format cannot represent. */
function sentChars(candidates: unknown): number {
  let chars = 0
  for (const { content } of objectsOf(candidates)) chars += outputChars(content)
  return chars
}

/**
 * Counts the output that is passed on. The arguments of calls count as text. Signed blocks do not count, because they repeat text that was already
 * passed on.
 */
function shownChars(choices: readonly Record<string, unknown>[]): number {
  let chars = 0
  for (const { delta } of choices) if (isObject(delta)) chars += outputChars({ ...delta, thinking_blocks: undefined })
  return chars
}

function choiceOf(index: number, delta: Record<string, unknown>, finish: string | null): Record<string, unknown> {
  return { index, delta, finish_reason: finish }
}

/** Returns the object, or the first object of a list. Gemini sends errors in both forms. */
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
  return {
    message: textOf(error['message']) || 'The provider broke off the stream.',
    type: faultTypes[status] ?? null,
    code: error['code'] === refusedCode ? refusedCode : status === '' ? null : status,
  }
}

/** Maps the provider's status of a failure to the gateway's `error.type`. */
const faultTypes: Readonly<Record<string, string>> = {
  RESOURCE_EXHAUSTED: 'rate_limit_error',
  UNAVAILABLE: 'overloaded_error',
  INVALID_ARGUMENT: 'invalid_request_error',
}
