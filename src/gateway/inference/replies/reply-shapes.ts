/**
 * Converts a whole reply into a stream, or a stream into a whole reply, when the provider sent another shape than the caller requested. All replies here are in
 * the hub format.
 */
import { isObject } from '../../../platform/values/json.ts'
import type { ChatStreamDecoder, ChatStreamEvent } from '../../wire/chat/chat-stream.ts'
import { spokenBytes } from '../../wire/output-chars.ts'

type Fields = Readonly<Record<string, unknown>>

/** Returns a whole reply as the events of a stream. */
export function eventsOfReply(reply: Fields): readonly ChatStreamEvent[] {
  const { choices, usage, id, created, model } = reply
  const head = { id, object: 'chat.completion.chunk', created, model }
  const made = (Array.isArray(choices) ? choices : []).flatMap((choice: unknown, index): readonly ChatStreamEvent[] => {
    if (!isObject(choice)) return []
    const { message, finish_reason: finish, ...rest } = choice
    const delta = isObject(message) ? withIndexes(message) : {}
    const at = { index, ...rest }
    return [
      { kind: 'chunk', chunk: { ...head, choices: [{ ...at, delta, finish_reason: null }] } },
      { kind: 'chunk', chunk: { ...head, choices: [{ ...at, delta: {}, finish_reason: finish ?? 'stop' }] } },
    ]
  })
  const last: readonly ChatStreamEvent[] = isObject(usage) ? [{ kind: 'chunk', chunk: { ...head, choices: [], usage } }] : []
  return [...made, ...last, { kind: 'done' }]
}

/** A call in a stream needs an index. */
function withIndexes(message: Fields): Record<string, unknown> {
  const { tool_calls: calls, ...rest } = message
  return Array.isArray(calls) ? { ...rest, tool_calls: calls.map((call: unknown, index) => (isObject(call) ? { index, ...call } : call)) } : { ...rest }
}

/** A decoder that returns events that already exist, at the first push. */
export class ReadyEvents implements ChatStreamDecoder {
  readonly heldBytes = 0
  #events: readonly ChatStreamEvent[]

  constructor(events: readonly ChatStreamEvent[]) {
    this.#events = events
  }

  push(): readonly ChatStreamEvent[] {
    const events = this.#events
    this.#events = []
    return events
  }

  end(): readonly ChatStreamEvent[] {
    return this.push()
  }
}

/** Collects a stream into a whole reply. Only the first of several answers is kept. */
export class CollectedReply {
  readonly #collected = new Collected()
  #isComplete = false
  #hasFailed = false

  /** Takes the next events. Returns false when the stream has ended or failed, so that later events are not read. */
  add(events: readonly ChatStreamEvent[]): boolean {
    for (const event of events) {
      if (this.#isComplete || this.#hasFailed) break
      if (event.kind === 'error') this.#hasFailed = true
      if (event.kind === 'done') this.#isComplete = true
      if (event.kind === 'chunk') this.#collected.add(event.chunk)
    }
    return !this.#isComplete && !this.#hasFailed
  }

  /** The whole reply. Null when the stream failed, did not reach its end, or had nothing but an end mark. */
  get reply(): Record<string, unknown> | null {
    if (this.#hasFailed) return null
    const isWhole = this.#isComplete || this.#collected.finishReason !== null
    return isWhole && this.#collected.hasSaid ? this.#collected.whole() : null
  }
}

/**
 * Returns how many UTF-8 bytes the text, thinking, refusals and arguments of calls in a whole reply have. A stream with the same content gives the
 * same number.
 */
export function saidChars(reply: Fields): number {
  let chars = 0
  for (const choice of Array.isArray(reply['choices']) ? reply['choices'] : []) if (isObject(choice)) chars += charsOf(choice['message'])
  return chars
}

function charsOf(message: unknown): number {
  if (!isObject(message)) return 0
  const { content, reasoning_content: thinking, reasoning, refusal, tool_calls: calls } = message
  let chars = textsOf(content) + (textsOf(thinking) || textsOf(reasoning)) + textsOf(refusal)
  for (const call of Array.isArray(calls) ? calls : []) {
    const made = isObject(call) ? (call['function'] ?? call['custom']) : null
    if (isObject(made)) chars += textsOf(made['name']) + textsOf(made['arguments'] ?? made['input'])
  }
  return chars
}

/** Content may be a list of parts. */
function textsOf(value: unknown): number {
  if (typeof value === 'string') return spokenBytes(value)
  return Array.isArray(value) ? value.reduce((chars: number, part: unknown) => chars + (isObject(part) ? textsOf(part['text']) : 0), 0) : 0
}

const textNames = ['content', 'reasoning_content', 'refusal'] as const

/** The fields of a stream that are kept beside the answers. No other field is read later, and a provider may send fields of any size. */
const headNames = ['id', 'created', 'model', 'system_fingerprint', 'service_tier'] as const
/** The most characters of such a field. */
const headMaxChars = 1024

const isShortScalar = (value: unknown): boolean => typeof value === 'number' || (typeof value === 'string' && value.length <= headMaxChars)

class Collected {
  finishReason: string | null = null
  /** True once the stream had a choice or usage. */
  hasSaid = false
  readonly #head = new Map<string, unknown>()
  #usage: unknown
  #stop: Record<string, unknown> = {}
  readonly #texts: Record<string, string> = {}
  readonly #thoughts: unknown[] = []
  readonly #calls = new Map<unknown, { id: unknown; type: 'function'; function: { name: string; arguments: string } }>()

  add(chunk: Fields): void {
    const { choices, usage } = chunk
    for (const name of headNames) if (!this.#head.has(name) && isShortScalar(chunk[name])) this.#head.set(name, chunk[name])
    if (isObject(usage)) {
      this.#usage = usage
      this.hasSaid = true
    }
    const choice: unknown = Array.isArray(choices) ? choices[0] : undefined
    if (!isObject(choice)) return
    this.hasSaid = true
    if (typeof choice['finish_reason'] === 'string') this.finishReason = choice['finish_reason']
    for (const name of ['stop_sequence', 'stop_reason']) if (typeof choice[name] === 'string') this.#stop[name] = choice[name]
    if (isObject(choice['delta'])) this.#addDelta(choice['delta'])
  }

  #addDelta(delta: Fields): void {
    for (const name of textNames) if (typeof delta[name] === 'string') this.#texts[name] = (this.#texts[name] ?? '') + delta[name]
    // One by one, because a call takes at most some hundred thousand arguments.
    for (const block of Array.isArray(delta['thinking_blocks']) ? delta['thinking_blocks'] : []) this.#thoughts.push(block)
    for (const call of Array.isArray(delta['tool_calls']) ? delta['tool_calls'] : []) if (isObject(call)) this.#addCall(call)
  }

  #addCall(call: Fields): void {
    const made = isObject(call['function']) ? call['function'] : {}
    const known = this.#calls.get(call['index']) ?? { id: call['id'], type: 'function' as const, function: { name: String(made['name'] ?? ''), arguments: '' } }
    if (typeof made['arguments'] === 'string') known.function.arguments += made['arguments']
    this.#calls.set(call['index'], known)
  }

  whole(): Record<string, unknown> {
    const message = {
      role: 'assistant',
      content: null,
      ...this.#texts,
      ...(this.#thoughts.length === 0 ? {} : { thinking_blocks: this.#thoughts }),
      ...(this.#calls.size === 0 ? {} : { tool_calls: [...this.#calls.values()] }),
    }
    const choice = { index: 0, message, finish_reason: this.finishReason ?? 'stop', ...this.#stop }
    return { ...Object.fromEntries(this.#head), object: 'chat.completion', choices: [choice], ...(this.#usage === undefined ? {} : { usage: this.#usage }) }
  }
}
