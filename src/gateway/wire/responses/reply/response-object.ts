import type { JsonObject } from '../../../../platform/values/json.ts'
import type { StreamFault } from '../../chat/chat-stream.ts'
import type { ReplyContext } from '../../client-format.ts'
import type { TokenUsage } from '../../usage.ts'
import { repeatedFields } from '../repeated-fields.ts'

/** How a response has ended, or that it is still in progress. */
export type ResponseEnd =
  | { readonly status: 'in_progress' | 'completed' }
  | { readonly status: 'incomplete'; readonly reason: 'max_output_tokens' | 'content_filter' }
  | { readonly status: 'failed'; readonly error: JsonObject }

/** Returns the end for a hub `finish_reason`. */
export function endOf(finishReason: unknown): ResponseEnd {
  if (finishReason === 'length') return { status: 'incomplete', reason: 'max_output_tokens' }
  if (finishReason === 'content_filter') return { status: 'incomplete', reason: 'content_filter' }
  return { status: 'completed' }
}

/** Returns the `response` object of the Responses API. It repeats the request as it was sent, except for very long fields. The gateway does not store it. */
export function responseObject(
  id: string,
  context: ReplyContext,
  end: ResponseEnd,
  output: readonly JsonObject[],
  usage: TokenUsage | null,
): Record<string, unknown> {
  const { model, nowSeconds } = context
  const given = repeatedFields(context.request)
  return {
    id,
    object: 'response',
    created_at: nowSeconds,
    status: end.status,
    background: false,
    error: end.status === 'failed' ? end.error : null,
    incomplete_details: end.status === 'incomplete' ? { reason: end.reason } : null,
    instructions: given['instructions'],
    max_output_tokens: given['max_output_tokens'],
    model,
    output,
    parallel_tool_calls: given['parallel_tool_calls'],
    previous_response_id: null,
    prompt_cache_key: given['prompt_cache_key'],
    reasoning: given['reasoning'],
    store: false,
    temperature: given['temperature'],
    text: given['text'],
    tool_choice: given['tool_choice'],
    tools: given['tools'],
    top_p: given['top_p'],
    truncation: given['truncation'],
    usage: usage === null ? null : responseUsage(usage),
    user: given['user'],
    metadata: given['metadata'],
    ...(usage === null ? {} : { x_br: context.bill(usage) }),
  }
}

/** Returns the `usage` block of a response. */
export function responseUsage({ promptTokens, completionTokens, cachedTokens, cacheWriteTokens, reasoningTokens }: TokenUsage): JsonObject {
  return {
    input_tokens: promptTokens,
    input_tokens_details: { cached_tokens: cachedTokens, ...(cacheWriteTokens === 0 ? {} : { cache_write_tokens: cacheWriteTokens }) },
    output_tokens: completionTokens,
    output_tokens_details: { reasoning_tokens: reasoningTokens },
    total_tokens: promptTokens + completionTokens,
  }
}

/**
 * Codes of faults for which a retry is useless: gateway code -> code that clients of this API know. After any other code, clients assume a broken
 * connection and retry.
 */
const finalCodes: Readonly<Record<string, string>> = {
  agent_budget_exceeded: 'insufficient_quota',
  budget_exceeded: 'insufficient_quota',
  run_budget_exceeded: 'insufficient_quota',
  insufficient_credits: 'insufficient_quota',
  agent_revoked: 'invalid_prompt',
  agent_paused: 'invalid_prompt',
  run_ended: 'invalid_prompt',
  invalid_api_key: 'invalid_prompt',
}

/** Provider codes that mean the same in this API. */
const sharedCodes = new Set(['rate_limit_exceeded', 'context_length_exceeded', 'insufficient_quota', 'invalid_prompt', 'server_is_overloaded', 'slow_down'])

/** Returns the `error` of a failed response. The gateway's own code is at the beginning of the message, because `code` must be one that clients know. */
export function responseError({ message, type, code }: StreamFault): JsonObject {
  const final = code === null ? undefined : finalCodes[code]
  if (final !== undefined) return { code: final, message: `${code}: ${message}`, type }
  if (code !== null && sharedCodes.has(code)) return { code, message, type }
  return { code: type === 'rate_limit_error' ? 'rate_limit_exceeded' : 'server_error', message: code === null ? message : `${code}: ${message}`, type }
}
