import { isObject, type JsonObject, objectsOf } from '../../../../platform/values/json.ts'
import { type TokenUsage, tokenCount, usageToOpenAi } from '../../../wire/usage.ts'
import { textOf } from '../json-values.ts'
import { blockOfItem, readableText } from './responses-reasoning.ts'

/**
 * Reads the `usage` block of a response. Cached tokens are part of the input. Returns null if there is no block, or if its input or output count is missing or
 * implausible.
 */
export function usageOfResponse(usage: unknown): TokenUsage | null {
  if (!isObject(usage)) return null
  const promptTokens = tokenCount(usage['input_tokens'])
  const completionTokens = tokenCount(usage['output_tokens'])
  if (promptTokens === null || completionTokens === null) return null
  const cachedTokens = Math.min(promptTokens, detail(usage['input_tokens_details'], 'cached_tokens'))
  return {
    promptTokens,
    completionTokens,
    cachedTokens,
    cacheWriteTokens: Math.min(promptTokens - cachedTokens, detail(usage['input_tokens_details'], 'cache_write_tokens')),
    reasoningTokens: Math.min(completionTokens, detail(usage['output_tokens_details'], 'reasoning_tokens')),
  }
}

const detail = (details: unknown, name: string): number => (isObject(details) ? (tokenCount(details[name]) ?? 0) : 0)

/** Converts a whole response to a chat completion. */
export function completionOfResponse(response: JsonObject): Record<string, unknown> {
  const usage = usageOfResponse(response['usage'])
  const output = objectsOf(response['output'])
  return {
    id: `chatcmpl-${textOf(response['id']).replace(/^resp_/, '')}`,
    object: 'chat.completion',
    created: typeof response['created_at'] === 'number' ? Math.floor(response['created_at']) : 0,
    model: textOf(response['model']),
    choices: [{ index: 0, message: messageOf(output), logprobs: null, finish_reason: finishOf(response, output.some(isCall)) }],
    ...(usage === null ? {} : { usage: usageToOpenAi(usage) }),
  }
}

/** Returns the finish reason of a response in the terms of chat. */
export function finishOf(response: JsonObject, hasCalls: boolean): string {
  const details = response['incomplete_details']
  const reason = isObject(details) ? details['reason'] : undefined
  if (reason === 'content_filter') return 'content_filter'
  if (response['status'] === 'incomplete') return 'length'
  return hasCalls ? 'tool_calls' : 'stop'
}

/** True for a call of a function or of a custom tool. */
export function isCall(item: JsonObject): boolean {
  return item['type'] === 'function_call' || item['type'] === 'custom_tool_call'
}

/** Returns a call in the format of chat, with the `arguments` or `input` that have arrived so far. */
export function chatCall(item: JsonObject): Record<string, unknown> {
  const id = textOf(item['call_id']) || textOf(item['id'])
  if (item['type'] === 'custom_tool_call') return { id, type: 'custom', custom: { name: item['name'], input: textOf(item['input']) } }
  return { id, type: 'function', function: { name: item['name'], arguments: textOf(item['arguments']) } }
}

function messageOf(output: readonly JsonObject[]): Record<string, unknown> {
  const parts = output.filter(item => item['type'] === 'message').flatMap(item => objectsOf(item['content']))
  const said = parts.filter(part => part['type'] === 'output_text').map(part => textOf(part['text']))
  const refusal = parts.map(part => textOf(part['refusal'])).join('')
  const reasoning = output.filter(item => item['type'] === 'reasoning')
  const thought = reasoning
    .map(readableText)
    .filter(text => text !== '')
    .join('\n\n')
  const blocks = reasoning.flatMap(item => blockOfItem(item) ?? [])
  const calls = output.filter(isCall).map(chatCall)
  return {
    role: 'assistant',
    content: said.length === 0 ? null : said.join(''),
    refusal: refusal === '' ? null : refusal,
    ...(thought === '' ? {} : { reasoning_content: thought }),
    ...(blocks.length === 0 ? {} : { thinking_blocks: blocks }),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
  }
}
