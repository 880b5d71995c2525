import { isObject, type JsonObject, objectsOf } from '../../../../platform/values/json.ts'
import type { ReplyContext } from '../../client-format.ts'
import { JsonTexts } from '../../json/json-texts.ts'
import { textOf } from '../../responses/json.ts'
import { isBlock, textOfBlocks } from '../../responses/reasoning.ts'
import { argumentsText, saidBy } from '../../responses/reply/output.ts'
import type { TokenUsage } from '../../usage.ts'
import { showsThoughts } from '../request/to-hub.ts'
import { geminiToolNames } from '../tool-names.ts'
import { endOf, type MadeCall, withSignature } from './candidate.ts'
import { usageMetadata } from './usage.ts'

/** Converts a whole hub reply to a reply of Google's API, with all of its answers. */
export function geminiReply(reply: JsonObject, usage: TokenUsage, context: ReplyContext): Record<string, unknown> {
  const shared = { names: geminiToolNames(context.request), texts: new JsonTexts(), shows: showsThoughts(context.request) }
  const choices = objectsOf(reply['choices'])
  return {
    candidates: choices.map((choice, index) => candidateOf(choice, index, shared, context)),
    usageMetadata: usageMetadata(usage),
    modelVersion: context.model,
    responseId: context.newId('resp_'),
  }
}

interface Shared {
  readonly names: ReturnType<typeof geminiToolNames>
  readonly texts: JsonTexts
  readonly shows: boolean
}

function candidateOf(choice: JsonObject, place: number, { names, texts, shows }: Shared, context: ReplyContext): JsonObject {
  const message = isObject(choice['message']) ? choice['message'] : {}
  const blocks = objectsOf(message['thinking_blocks']).filter(isBlock)
  const thought = textOf(message['reasoning_content']) ?? textOf(message['reasoning']) ?? textOfBlocks(blocks)
  const refusal = textOf(message['refusal']) ?? ''
  const { parts: calls, end } = endOf(callsOf(message, context), { reason: choice['finish_reason'], hasRefusal: refusal !== '' }, names, texts)
  const said = [saidBy(message['content']), refusal].filter(text => text !== '').map(text => ({ text }))
  const parts = withSignature([...said, ...imageParts(message['images']), ...calls], { text: thought, blocks })
  return {
    content: { parts: shows && thought !== '' ? [{ text: thought, thought: true }, ...parts] : parts, role: 'model' },
    ...end,
    index: typeof choice['index'] === 'number' ? choice['index'] : place,
  }
}

function callsOf(message: JsonObject, context: ReplyContext): readonly MadeCall[] {
  const { tool_calls: calls, function_call: older } = message
  const made = Array.isArray(calls) && calls.length > 0 ? objectsOf(calls) : isObject(older) ? [{ function: older } as JsonObject] : []
  return made.flatMap(call => {
    const called = call['function']
    if (!isObject(called) || typeof called['name'] !== 'string') return []
    return { id: textOf(call['id']) || context.newId('call_'), name: called['name'], argumentsText: argumentsText(called['arguments']) }
  })
}

/** Returns pictures that the model has made, as parts. */
export function imageParts(images: unknown): readonly JsonObject[] {
  return objectsOf(images).flatMap(image => {
    const held = image['image_url']
    const url = textOf(isObject(held) ? held['url'] : held) ?? ''
    const head = /^data:([a-z0-9.+/-]+);base64,/i.exec(url.slice(0, 100))
    if (head !== null) return { inlineData: { mimeType: head[1] ?? 'image/png', data: url.slice(head[0].length) } }
    return url === '' ? [] : { fileData: { fileUri: url } }
  })
}
