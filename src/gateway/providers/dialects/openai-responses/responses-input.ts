import { fail } from '../../../../platform/errors.ts'
import { isObject, type JsonObject, objectsOf } from '../../../../platform/values/json.ts'
import { JsonTexts } from '../../../wire/json/json-texts.ts'
import { readCallId } from '../gemini/gemini-signature.ts'
import { messagesOf, missingResultText } from '../hub-messages.ts'
import { textOf } from '../json-values.ts'
import { itemOfBlock } from './responses-reasoning.ts'

/**
 * Returns hub messages as input items of the Responses API. A call without a result gets an error as its output. What the API cannot express is added
 * to `dropped`. Throws `bad_request` for a result without a call.
 */
export function inputItems(messages: unknown, dropped: Set<string>): readonly JsonObject[] {
  const called = new Map<unknown, string>()
  const answered = new Set<unknown>()
  const texts = new JsonTexts()
  const items = messagesOf(messages, dropped, { takesMarks: false, partFields: ['prompt_cache_breakpoint'] }).flatMap((message, index) => {
    switch (message['role']) {
      case 'assistant':
        for (const call of objectsOf(message['tool_calls'])) called.set(call['id'], outputType(call))
        return assistantItems(message, dropped, texts)
      case 'tool': {
        const type = called.get(message['tool_call_id'])
        if (type === undefined)
          throw fail('bad_request', {
            message: `"messages[${index}].tool_call_id" names no call of an assistant message before it. Send the message with "tool_calls" too.`,
          })
        answered.add(plainId(message['tool_call_id']))
        return [{ type, call_id: plainId(message['tool_call_id']), output: contentParts(message['content'], dropped) }]
      }
      default:
        return [{ role: message['role'], content: contentParts(message['content'], dropped) }]
    }
  })
  return withOutputs(items, answered)
}

/** Adds an output for every call without one, after each series of calls. */
function withOutputs(items: readonly JsonObject[], answered: ReadonlySet<unknown>): readonly JsonObject[] {
  const made: JsonObject[] = []
  let owed: JsonObject[] = []
  for (const item of items) {
    if (!isCall(item)) {
      for (const call of owed) made.push(missingOutput(call))
      owed = []
    } else if (!answered.has(item['call_id'])) owed.push(item)
    made.push(item)
  }
  for (const call of owed) made.push(missingOutput(call))
  return made
}

const outputType = ({ custom }: JsonObject): string => (isObject(custom) ? 'custom_tool_call_output' : 'function_call_output')

const isCall = ({ type }: JsonObject): boolean => type === 'function_call' || type === 'custom_tool_call'

function missingOutput({ type, call_id: id }: JsonObject): JsonObject {
  return { type: `${textOf(type)}_output`, call_id: id, output: missingResultText }
}

/** Returns the id without the signature of another provider. This API limits the length of ids. */
const plainId = (id: unknown): unknown => (typeof id === 'string' ? readCallId(id).id : id)

function assistantItems(message: JsonObject, dropped: Set<string>, texts: JsonTexts): readonly JsonObject[] {
  const items: JsonObject[] = []
  const blocks = objectsOf(message['thinking_blocks'])
  for (const block of blocks) {
    const item = itemOfBlock(block, texts)
    if (item === null) dropped.add('messages.thinking_blocks')
    else items.push(item)
  }
  // This API accepts only thinking that its provider has encrypted.
  if (blocks.length === 0 && textOf(message['reasoning_content']) !== '') dropped.add('messages.reasoning_content')
  const said = textOfContent(message['content'])
  const refusal = textOf(message['refusal'])
  if (said !== '' || refusal !== '') items.push({ role: 'assistant', content: said === '' ? refusal : said })
  for (const call of objectsOf(message['tool_calls'])) items.push(callItem(call))
  return items
}

function callItem(call: JsonObject): JsonObject {
  const custom = call['custom']
  if (isObject(custom)) return { type: 'custom_tool_call', call_id: plainId(call['id']), name: custom['name'], input: textOf(custom['input']) }
  const made = isObject(call['function']) ? call['function'] : {}
  const text = isObject(made['arguments']) ? JSON.stringify(made['arguments']) : textOf(made['arguments'])
  return { type: 'function_call', call_id: plainId(call['id']), name: made['name'], arguments: text.trim() === '' ? '{}' : text }
}

function textOfContent(content: unknown): string {
  if (typeof content === 'string') return content
  return objectsOf(content)
    .map(part => textOf(part['text']) || textOf(part['refusal']))
    .join('')
}

function contentParts(content: unknown, dropped: Set<string>): string | readonly JsonObject[] {
  if (typeof content === 'string') return content
  return objectsOf(content).flatMap(part => inputPart(part, dropped))
}

function inputPart(part: JsonObject, dropped: Set<string>): readonly JsonObject[] {
  const [made] = uncachedPart(part, dropped)
  if (made === undefined) return []
  const { prompt_cache_breakpoint: breakpoint } = part
  return [isObject(breakpoint) ? { ...made, prompt_cache_breakpoint: breakpoint } : made]
}

function uncachedPart(part: JsonObject, dropped: Set<string>): readonly JsonObject[] {
  switch (part['type']) {
    case 'text':
      return [{ type: 'input_text', text: textOf(part['text']) }]
    case 'image_url': {
      const image = isObject(part['image_url']) ? part['image_url'] : { url: part['image_url'] }
      return [{ type: 'input_image', image_url: image['url'], detail: textOf(image['detail']) || 'auto' }]
    }
    case 'file': {
      const file = isObject(part['file']) ? part['file'] : {}
      return [
        {
          type: 'input_file',
          ...withoutNulls({ filename: file['filename'], file_data: file['file_data'], file_url: file['file_url'], file_id: file['file_id'] }),
        },
      ]
    }
    case 'input_audio':
      return [{ type: 'input_audio', input_audio: part['input_audio'] }]
    default:
      dropped.add(`messages.content.${textOf(part['type']) || 'unknown'}`)
      return []
  }
}

function withoutNulls(fields: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== null))
}
