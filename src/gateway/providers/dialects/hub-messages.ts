/** Reads messages of the hub format, for the dialects other than OpenAI chat. */
import { fail } from '../../../platform/errors.ts'
import { isObject, type JsonObject, objectsOf } from '../../../platform/values/json.ts'
import type { JsonTexts } from '../../wire/json/json-texts.ts'
import { argumentsObject, textOf } from './json-values.ts'
import { asksForNothing } from './uncarried.ts'

export interface ReadOptions {
  /** True when the dialect can express marks of the prompt cache. */
  readonly takesMarks: boolean
  /** Fields of content parts that the dialect accepts in addition to the common ones. */
  readonly partFields?: readonly string[]
}

/**
 * The known fields of a message, for each role. The dialects read them, or they have no effect, such as the tool's name that some clients put next to a
 * tool's result. Other fields are reported as dropped.
 */
const fieldsByRole: Readonly<Record<string, readonly string[]>> = {
  assistant: ['tool_calls', 'function_call', 'refusal', 'reasoning_content', 'thinking_blocks'],
  tool: ['tool_call_id', 'name'],
  function: ['name'],
}

const partFieldsByType: Readonly<Record<string, readonly string[]>> = {
  text: ['text'],
  refusal: ['refusal'],
  image_url: ['image_url'],
  input_audio: ['input_audio'],
  file: ['file', 'file_url'],
}

/**
 * Returns the messages. Calls in the older `function_call` form are converted to tool calls. Fields that no dialect can express are added to
 * `dropped`. Throws `bad_request` for the result of a function that was never called.
 */
export function messagesOf(messages: unknown, dropped: Set<string>, options: ReadOptions): readonly JsonObject[] {
  const calls = new Map<string, string>()
  return objectsOf(messages).map((message, index) => {
    noteFields(message, dropped, options)
    return withoutOlderCalls(message, index, calls)
  })
}

function noteFields(message: JsonObject, dropped: Set<string>, { takesMarks, partFields = [] }: ReadOptions): void {
  const note = (holder: JsonObject, known: readonly string[], at: string): void => {
    for (const [name, value] of Object.entries(holder)) {
      if (known.includes(name) || asksForNothing(name, value)) continue
      if (name !== 'cache_control') dropped.add(`${at}.${name}`)
      else if (!takesMarks) dropped.add(name)
    }
  }
  note(message, ['role', 'content', ...(fieldsByRole[textOf(message['role'])] ?? [])], 'messages')
  for (const part of objectsOf(message['content'])) {
    const known = partFieldsByType[textOf(part['type'])]
    if (known !== undefined) note(part, ['type', ...known, ...partFields], 'messages.content')
  }
  for (const call of objectsOf(message['tool_calls'])) if (isObject(call['cache_control']) && !takesMarks) dropped.add('cache_control')
}

/** Converts the older form of calls. It has no ids, so a result belongs to the last call of the same name. */
function withoutOlderCalls(message: JsonObject, index: number, calls: Map<string, string>): JsonObject {
  const { function_call: older, ...others } = message
  if (message['role'] === 'assistant' && isObject(older) && objectsOf(message['tool_calls']).length === 0) {
    const name = textOf(older['name'])
    const id = `call_${index}_${name}`
    calls.set(name, id)
    return { ...others, tool_calls: [{ id, type: 'function', function: older }] }
  }
  if (message['role'] !== 'function') return message
  const name = textOf(message['name'])
  const id = calls.get(name)
  calls.delete(name)
  if (id === undefined) throw fail('bad_request', { message: `"messages[${index}].name" names no "function_call" of an assistant message before it.` })
  return { role: 'tool', tool_call_id: id, content: message['content'] ?? '' }
}

/** Returns the name and the arguments of a call. For a freeform tool, the text is the only argument. Throws `bad_request` as `argumentsObject` does. */
export function calledOf(call: JsonObject, texts: JsonTexts): { readonly name: string; readonly input: Record<string, unknown> } {
  const { function: made, custom } = call
  const name = calledName(call)
  if (isObject(custom)) return { name, input: { input: textOf(custom['input']) } }
  return { name, input: isObject(made) ? argumentsObject(made['arguments'], texts) : {} }
}

/** Returns the name of the called tool, or '' when the call names none. */
export function calledName({ function: made, custom }: JsonObject): string {
  const called = isObject(custom) ? custom : made
  return isObject(called) ? textOf(called['name']) : ''
}

/** Records thinking of an earlier turn that is left out: every block that is not among the `carried` ones, and thinking without blocks. */
export function noteThoughts({ thinking_blocks: blocks, reasoning_content: thought }: JsonObject, carried: number, dropped: Set<string>): void {
  const given = objectsOf(blocks).length
  if (given > carried) dropped.add('messages.thinking_blocks')
  else if (given === 0 && textOf(thought) !== '') dropped.add('messages.reasoning_content')
}

/** Adds the `detail` of an image to the dropped fields. The default value `auto` is not added, because leaving it out has no effect. */
export function noteDetail(image: unknown, dropped: Set<string>): void {
  if (isObject(image) && typeof image['detail'] === 'string' && image['detail'] !== 'auto') dropped.add('messages.content.image_url.detail')
}

/** The text that replaces the result of a call that was never answered. */
export const missingResultText = 'There is no result of this call.'
