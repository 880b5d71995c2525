/** Converts a whole reply of the messages format to the hub format. */

import { isObject, type JsonObject, objectsOf } from '../../../../platform/values/json.ts'
import { usageFromMessages } from '../../../wire/messages/reply/usage.ts'
import { usageToOpenAi } from '../../../wire/usage.ts'
import { textOf } from '../json-values.ts'
import { replyToolName } from './anthropic-format.ts'

/** The text of a refusal for which the provider gives no text. */
const refusalText = 'The model refused to answer.'

/** Returns the reply as a chat completion. Blocks of the provider's own tools are left out, but `annotations` cites their results. */
export function completionOf(reply: JsonObject): Record<string, unknown> {
  const blocks = objectsOf(reply['content'])
  const usage = usageFromMessages(reply['usage'])
  const calls = blocks.filter(block => block['type'] === 'tool_use' && block['name'] !== replyToolName)
  return {
    ...(typeof reply['id'] === 'string' ? { id: reply['id'] } : {}),
    object: 'chat.completion',
    choices: [{ index: 0, message: messageOf(blocks, calls, reply), logprobs: null, ...finishOf(reply, calls.length > 0) }],
    ...(usage === null ? {} : { usage: usageToOpenAi(usage) }),
  }
}

function messageOf(blocks: readonly JsonObject[], calls: readonly JsonObject[], reply: JsonObject): Record<string, unknown> {
  const text = blocks.map(saidIn).join('')
  const thinking = blocks.map(block => (block['type'] === 'thinking' ? textOf(block['thinking']) : '')).join('')
  const signed = blocks.flatMap(signedThinking)
  const annotations = blocks.flatMap(block => (block['type'] === 'text' ? objectsOf(block['citations']).flatMap(annotationOf) : []))
  const refusal = reply['stop_reason'] === 'refusal' ? refusalOf(reply['stop_details']) : null
  return {
    role: 'assistant',
    content: text === '' && (calls.length > 0 || refusal !== null) ? null : text,
    refusal,
    ...(thinking === '' ? {} : { reasoning_content: thinking }),
    ...(signed.length === 0 ? {} : { thinking_blocks: signed }),
    ...(annotations.length === 0 ? {} : { annotations }),
    ...(calls.length === 0 ? {} : { tool_calls: calls.map(callOf) }),
  }
}

/** Returns the text of a block. A call of the tool that represents the reply counts as text. */
function saidIn(block: JsonObject): string {
  if (block['type'] === 'text') return textOf(block['text'])
  return block['type'] === 'tool_use' && block['name'] === replyToolName ? JSON.stringify(block['input'] ?? {}) : ''
}

/** Returns a thinking block that can be sent back in the next turn. A block without a signature cannot be sent back. */
export function signedThinking(block: JsonObject): Record<string, unknown>[] {
  if (block['type'] === 'redacted_thinking') return [{ type: 'redacted_thinking', data: block['data'] }]
  if (block['type'] !== 'thinking' || textOf(block['signature']) === '') return []
  return [{ type: 'thinking', thinking: textOf(block['thinking']), signature: block['signature'] }]
}

function callOf(block: JsonObject): Record<string, unknown> {
  return { id: block['id'], type: 'function', function: { name: block['name'], arguments: JSON.stringify(block['input'] ?? {}) } }
}

/** Returns a web page that the text cites, in OpenAI's form. Citations of other kinds are left out, because that form has no place for them. */
export function annotationOf(citation: JsonObject): Record<string, unknown>[] {
  const { url, title } = citation
  return typeof url === 'string' ? [{ type: 'url_citation', url_citation: { url, title: textOf(title) } }] : []
}

/** Returns the provider's explanation of its refusal. */
export function refusalOf(details: unknown): string {
  return isObject(details) && typeof details['explanation'] === 'string' && details['explanation'] !== '' ? details['explanation'] : refusalText
}

const finishReasons: Readonly<Record<string, string>> = {
  end_turn: 'stop',
  stop_sequence: 'stop',
  // The provider paused after long use of its own tools. The text so far is the answer.
  pause_turn: 'stop',
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  tool_use: 'tool_calls',
  refusal: 'content_filter',
}

/**
 * Returns `finish_reason`, and the matched stop string if the provider names it. A call of the tool that represents the reply does not count as a
 * call.
 */
export function finishOf(stop: JsonObject, hasCalls: boolean): { finish_reason: string; stop_sequence?: string } {
  const reason = finishReasons[textOf(stop['stop_reason'])] ?? (hasCalls ? 'tool_calls' : 'stop')
  const met = stop['stop_sequence']
  return { finish_reason: reason === 'tool_calls' && !hasCalls ? 'stop' : reason, ...(typeof met === 'string' ? { stop_sequence: met } : {}) }
}
