import { isObject, type JsonObject, objectsOf } from '../../../../platform/values/json.ts'
import type { ReplyContext } from '../../client-format.ts'
import { JsonTexts } from '../../json/json-texts.ts'
import { textOf } from '../json.ts'
import { packThinking, type Thinking } from '../reasoning.ts'
import { freeformInput } from '../request/tools.ts'
import { type ToolIdentity, ToolNames } from '../tool-names.ts'

/** Builds items of a reply of the Responses API. */

/** The progress of an item. */
export type ItemStatus = 'in_progress' | 'completed' | 'incomplete'

/** One part of a message. */
export const textPart = (text: string): JsonObject => ({ type: 'output_text', text, annotations: [], logprobs: [] })
export const refusalPart = (refusal: string): JsonObject => ({ type: 'refusal', refusal })

export function messageItem(id: string, status: ItemStatus, content: readonly JsonObject[]): JsonObject {
  return { id, type: 'message', status, role: 'assistant', content }
}

/** Returns an item for thinking: as a summary if the client asked for summaries, else as the text itself. */
export function reasoningItem(id: string, thinking: Thinking, asSummary: boolean): JsonObject {
  const { text } = thinking
  return {
    id,
    type: 'reasoning',
    summary: asSummary && text !== '' ? [{ type: 'summary_text', text }] : [],
    ...(asSummary || text === '' ? {} : { content: [{ type: 'reasoning_text', text }] }),
    encrypted_content: packThinking(thinking),
  }
}

/** True if the client asked for a summary of the reasoning. */
function wantsSummary(request: JsonObject): boolean {
  const { reasoning } = request
  if (!isObject(reasoning)) return false
  const wanted = textOf(reasoning['summary']) ?? textOf(reasoning['generate_summary'])
  return wanted !== null && wanted !== 'none'
}

/** The prefix of a call item's id. */
export function callPrefix({ kind }: ToolIdentity): string {
  return kind === 'custom' ? 'ctc_' : kind === 'tool_search' ? 'tsc_' : 'fc_'
}

/** A call without its arguments. */
export interface Called {
  readonly id: string
  readonly callId: string
  readonly identity: ToolIdentity
  /** The JSON texts of the same reply. */
  readonly texts: JsonTexts
}

/** Returns an item for a call. `argumentsText` is the JSON text that the model has written so far. */
export function callItem({ id, callId, identity, texts }: Called, argumentsText: string, status: ItemStatus): JsonObject {
  const { kind, namespace, name } = identity
  const spaced = namespace === null ? {} : { namespace }
  switch (kind) {
    case 'custom':
      return { id, type: 'custom_tool_call', status, call_id: callId, ...spaced, name, input: freeformInput(argumentsText) }
    case 'tool_search':
      return { id, type: 'tool_search_call', status, call_id: callId, execution: 'client', arguments: texts.object(argumentsText) ?? {} }
    case 'function':
      return { id, type: 'function_call', status, call_id: callId, ...spaced, name, arguments: argumentsText }
  }
}

/** The values that all items of one reply need. */
export interface ItemMaker {
  readonly names: ToolNames
  readonly asSummary: boolean
  readonly texts: JsonTexts
  newId(prefix: string): string
}

/** Returns the maker for the reply to one request. */
export function makerOf(context: ReplyContext): ItemMaker {
  const { request } = context
  return { names: ToolNames.of(request), asSummary: wantsSummary(request), texts: new JsonTexts(), newId: prefix => context.newId(prefix) }
}

/** Returns the items of a whole hub message: thinking, text, calls. */
export function itemsOf(message: JsonObject, status: ItemStatus, { names, asSummary, texts, newId }: ItemMaker): readonly JsonObject[] {
  const items: JsonObject[] = []
  const blocks = objectsOf(message['thinking_blocks'])
  const text = textOf(message['reasoning_content']) ?? textOf(message['reasoning']) ?? ''
  if (text !== '' || blocks.length > 0) items.push(reasoningItem(newId('rs_'), { text, blocks }, asSummary))
  const said = saidBy(message['content'])
  const refusal = textOf(message['refusal']) ?? ''
  const content = [...(said === '' ? [] : [textPart(said)]), ...(refusal === '' ? [] : [refusalPart(refusal)])]
  if (content.length > 0) items.push(messageItem(newId('msg_'), status, content))
  for (const call of objectsOf(message['tool_calls'])) {
    const made = isObject(call['function']) ? call['function'] : {}
    const identity = names.identity(textOf(made['name']) ?? '')
    const called = { id: newId(callPrefix(identity)), callId: textOf(call['id']) ?? newId('call_'), identity, texts }
    items.push(callItem(called, argumentsText(made['arguments']), status))
  }
  return items
}

/** Returns the text of a message, given as text or as parts. */
export function saidBy(content: unknown): string {
  if (typeof content === 'string') return content
  return objectsOf(content)
    .flatMap(part => textOf(part['text']) ?? [])
    .join('')
}

/** Returns the arguments as JSON text. A call without arguments has `{}`. */
export function argumentsText(given: unknown): string {
  if (typeof given === 'string') return given.trim() === '' ? '{}' : given
  return isObject(given) ? JSON.stringify(given) : '{}'
}
