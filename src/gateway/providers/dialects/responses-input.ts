import { isObject, type JsonObject, objectsOf, textOf } from './json-values.ts'
import { itemOfBlock } from './responses-reasoning.ts'

/** Hub messages as input items of the Responses API. What could not be carried is added to `dropped`. */
export function inputItems(messages: unknown, dropped: Set<string>): readonly JsonObject[] {
  return objectsOf(messages).flatMap(message => {
    switch (message['role']) {
      case 'assistant':
        return assistantItems(message, dropped)
      case 'tool':
        return [toolOutput(message, dropped)]
      case 'function':
        dropped.add('messages.function')
        return []
      default:
        return [{ role: message['role'], content: contentParts(message['content'], dropped) }]
    }
  })
}

function assistantItems(message: JsonObject, dropped: Set<string>): readonly JsonObject[] {
  const items: JsonObject[] = []
  const blocks = objectsOf(message['thinking_blocks'])
  for (const block of blocks) {
    const item = itemOfBlock(block)
    if (item === null) dropped.add('messages.thinking_blocks')
    else items.push(item)
  }
  // Thinking that its provider has not sealed is nothing that this API takes back.
  if (blocks.length === 0 && textOf(message['reasoning_content']) !== '') dropped.add('messages.reasoning_content')
  const said = textOfContent(message['content'])
  const refusal = textOf(message['refusal'])
  if (said !== '' || refusal !== '') items.push({ role: 'assistant', content: said === '' ? refusal : said })
  for (const call of objectsOf(message['tool_calls'])) items.push(callItem(call))
  return items
}

function callItem(call: JsonObject): JsonObject {
  const custom = call['custom']
  if (isObject(custom)) return { type: 'custom_tool_call', call_id: call['id'], name: custom['name'], input: textOf(custom['input']) }
  const made = isObject(call['function']) ? call['function'] : {}
  const text = isObject(made['arguments']) ? JSON.stringify(made['arguments']) : textOf(made['arguments'])
  return { type: 'function_call', call_id: call['id'], name: made['name'], arguments: text.trim() === '' ? '{}' : text }
}

function toolOutput(message: JsonObject, dropped: Set<string>): JsonObject {
  const parts = contentParts(message['content'], dropped)
  return { type: 'function_call_output', call_id: message['tool_call_id'], output: parts }
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
  if (isObject(part['cache_control'])) dropped.add('cache_control')
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
