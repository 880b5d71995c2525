import { fail } from '../../../../platform/errors.ts'
import { isObject, type JsonObject, objectsOf } from '../../../../platform/values/json.ts'
import { JsonTexts } from '../../json/json-texts.ts'
import { shownType, textOf } from '../json.ts'
import { foreignThinkingName, thinkingOf } from '../reasoning.ts'
import { identityOfCall, nameMaxChars, type ToolNames } from '../tool-names.ts'
import { CallOutputs, isCall, isOutput } from './call-outputs.ts'
import { hubContent } from './parts.ts'

/** The conversation of a Responses request as hub messages. */
export interface Conversation {
  readonly messages: readonly JsonObject[]
  /** The names of parts that could not be carried. */
  readonly dropped: ReadonlySet<string>
}

/** The unfinished turn of the assistant. All items of one turn become one message in the hub format. */
interface Turn {
  /** True: the output of one of the turn's calls has been read. The next item of the assistant then begins a new turn. */
  isAnswered: boolean
  /** The texts of its messages. */
  texts: string[]
  refusals: string[]
  calls: { readonly id: string; readonly call: JsonObject; readonly at: string }[]
  callIds: Set<unknown>
  thinking: string[]
  blocks: JsonObject[]
}

/**
 * Reads `input` (text or items) into messages. Adjacent items of the assistant become one message. After the output of one of its calls, the next item of the
 * assistant begins a new message. The outputs are placed directly after their calls, because chat formats require it. Throws `bad_request` and
 * `unsupported_operation`, which name the faulty item.
 */
export function readInput(input: unknown, instructions: string | null, names: ToolNames): Conversation {
  const reader = new InputReader(names)
  if (instructions !== null && instructions !== '') reader.instruct(instructions)
  if (typeof input === 'string') reader.message({ role: 'user', content: input }, 'input')
  else if (Array.isArray(input)) reader.items(input)
  return reader.end()
}

class InputReader {
  readonly #names: ToolNames
  readonly #messages: JsonObject[] = []
  readonly #dropped = new Set<string>()
  readonly #texts = new JsonTexts()
  #outputs = new CallOutputs([])
  #turn: Turn | null = null

  constructor(names: ToolNames) {
    this.#names = names
  }

  /** Adds the instructions as the first system message. */
  instruct(text: string): void {
    this.#system(text)
  }

  items(items: readonly unknown[]): void {
    this.#outputs = new CallOutputs(objectsOf(items))
    items.forEach((item, index) => {
      if (isObject(item) && isOutput(item['type'])) this.#outputs.add(item, `input[${index}]`)
    })
    items.forEach((item, index) => {
      this.#item(item, `input[${index}]`)
    })
  }

  end(): Conversation {
    this.#closeTurn()
    return { messages: this.#messages, dropped: this.#dropped }
  }

  #item(item: unknown, at: string): void {
    if (!isObject(item)) throw fail('bad_request', { message: `"${at}" must be an object.` })
    const type = item['type'] ?? 'message'
    if (isOutput(type)) {
      if (this.#turn?.callIds.has(item['call_id']) === true) this.#turn.isAnswered = true
      return
    }
    if (isCall(type)) {
      this.#call(item, at)
      return
    }
    switch (type) {
      case 'message':
        this.message(item, at)
        return
      case 'reasoning':
        this.#reasoning(item)
        return
      case 'additional_tools':
        // Nothing to add here: the tools of this item are offered together with those of the request.
        return
      case 'item_reference':
        throw fail('unsupported_operation', { message: `"${at}" refers to a stored item, and nothing is stored here. Send the item itself.` })
      default:
        throw fail('unsupported_operation', {
          message: `"${at}" is of type ${shownType(type)}, which is not offered here. Messages, reasoning, additional_tools, and calls of function, custom and tool_search tools with their outputs are.`,
        })
    }
  }

  message(item: JsonObject, at: string): void {
    const role = textOf(item['role'])
    const content = hubContent(item['content'], `${at}.content`)
    switch (role) {
      case 'assistant':
        this.#say(content)
        return
      case 'system':
      case 'developer':
        this.#closeTurn()
        this.#system(content)
        return
      case 'user':
        this.#closeTurn()
        this.#messages.push({ role, content })
        return
      default:
        throw fail('bad_request', { message: `"${at}.role" must be user, assistant, system or developer.` })
    }
  }

  #say(content: string | readonly JsonObject[]): void {
    const { texts, refusals } = this.#startTurn()
    const parts = typeof content === 'string' ? [{ text: content }] : content
    const text = parts.flatMap(part => textOf(part['text']) ?? []).join('')
    const refusal = parts.flatMap(part => textOf(part['refusal']) ?? []).join('')
    if (text !== '') texts.push(text)
    if (refusal !== '') refusals.push(refusal)
  }

  /**
   * Adds a system or developer message. Both become system messages, because every server knows those. Messages at the beginning are joined, because some
   * servers accept only one.
   */
  #system(content: string | readonly JsonObject[]): void {
    const last = this.#messages.at(-1)
    const text = typeof content === 'string' ? content : content.flatMap(part => textOf(part['text']) ?? []).join('\n\n')
    const before = last?.['role'] === 'system' ? textOf(last['content']) : null
    if (before !== null) this.#messages[this.#messages.length - 1] = { role: 'system', content: `${before}\n\n${text}` }
    else this.#messages.push({ role: 'system', content: text })
  }

  #reasoning(item: JsonObject): void {
    const turn = this.#startTurn()
    const { text, blocks, isForeign } = thinkingOf(item, this.#texts)
    if (text !== '') turn.thinking.push(text)
    for (const block of blocks) turn.blocks.push(block)
    if (isForeign) this.#dropped.add(foreignThinkingName)
  }

  #call(item: JsonObject, at: string): void {
    const id = textOf(item['call_id'])
    if (id === null || id === '') throw fail('bad_request', { message: `"${at}.call_id" must be a non-empty string.` })
    const identity = identityOfCall(item)
    if (identity.name === '') throw fail('bad_request', { message: `"${at}.name" must be a non-empty string.` })
    if (identity.name.length > nameMaxChars) throw fail('bad_request', { message: `"${at}.name" is longer than ${nameMaxChars} characters.` })
    const call = { id, type: 'function', function: { name: this.#names.hubName(identity), arguments: argumentsOf(item) } }
    const { calls, callIds } = this.#startTurn()
    calls.push({ id, call, at })
    callIds.add(id)
  }

  #startTurn(): Turn {
    if (this.#turn?.isAnswered === true) this.#closeTurn()
    this.#turn ??= { isAnswered: false, texts: [], refusals: [], calls: [], callIds: new Set(), thinking: [], blocks: [] }
    return this.#turn
  }

  #closeTurn(): void {
    const turn = this.#turn
    this.#turn = null
    if (turn === null || turn.texts.length + turn.refusals.length + turn.calls.length === 0) return
    this.#messages.push(assistantMessage(turn))
    const shown: JsonObject[] = []
    for (const { id, at } of turn.calls) {
      const output = this.#outputs.take(id, at)
      this.#messages.push({ role: 'tool', tool_call_id: id, content: output.text })
      for (const part of output.shown) shown.push(part)
    }
    if (shown.length > 0) this.#messages.push({ role: 'user', content: shown })
  }
}

function assistantMessage({ texts, refusals, calls, thinking, blocks }: Turn): JsonObject {
  const refusal = refusals.join('\n\n')
  return {
    role: 'assistant',
    content: texts.length > 0 ? texts.join('\n\n') : refusal === '' ? null : '',
    ...(refusal === '' ? {} : { refusal }),
    ...(thinking.length === 0 ? {} : { reasoning_content: thinking.join('\n\n') }),
    ...(blocks.length === 0 ? {} : { thinking_blocks: blocks }),
    ...(calls.length === 0 ? {} : { tool_calls: calls.map(({ call }) => call) }),
  }
}

/** Returns the arguments as text. Freeform input becomes the only argument of its function. */
function argumentsOf(item: JsonObject): string {
  if (item['type'] === 'custom_tool_call') return JSON.stringify({ input: textOf(item['input']) ?? '' })
  const given = item['arguments']
  if (typeof given === 'string') return given === '' ? '{}' : given
  return isObject(given) ? JSON.stringify(given) : '{}'
}
