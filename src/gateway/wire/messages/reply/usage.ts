import { isObject } from '../../../../platform/values/json.ts'
import { noUsage, type TokenUsage, tokenCount } from '../../usage.ts'

/**
 * Reads the `usage` block of the messages format. Its `input_tokens` do not include tokens that were read from a cache or written to one. The gateway's
 * prompt is the sum of all three numbers. Returns null if the input or the output count is missing or implausible.
 */
export function usageFromMessages(usage: unknown): TokenUsage | null {
  return tellsOutput(usage) ? mergeMessagesUsage(null, usage) : null
}

/** True for a block with a plausible number of output tokens. */
export function tellsOutput(usage: unknown): boolean {
  return isObject(usage) && tokenCount(usage['output_tokens']) !== null
}

/**
 * Merges the usage blocks of one stream. A later block overrides the numbers that it has and keeps the others. Returns null until a block has reported the
 * prompt.
 */
export function mergeMessagesUsage(before: TokenUsage | null, usage: unknown): TokenUsage | null {
  if (!isObject(usage)) return before
  const input = tokenCount(usage['input_tokens'])
  const output = tokenCount(usage['output_tokens'])
  if (input === null && (output === null || before === null)) return before
  const known = before ?? noUsage
  const cachedTokens = tokenCount(usage['cache_read_input_tokens']) ?? known.cachedTokens
  const cacheWriteTokens = tokenCount(usage['cache_creation_input_tokens']) ?? known.cacheWriteTokens
  const cacheWriteLongTokens = longTokens(usage['cache_creation']) ?? known.cacheWriteLongTokens
  const freshTokens = input ?? known.promptTokens - known.cachedTokens - known.cacheWriteTokens
  return {
    ...known,
    promptTokens: freshTokens + cachedTokens + cacheWriteTokens,
    completionTokens: output ?? known.completionTokens,
    cachedTokens,
    cacheWriteTokens,
    ...(cacheWriteLongTokens === undefined ? {} : { cacheWriteLongTokens }),
    reasoningTokens: Math.min(output ?? known.completionTokens, thinkingTokens(usage['output_tokens_details']) ?? known.reasoningTokens),
  }
}

function thinkingTokens(details: unknown): number | null {
  return isObject(details) ? tokenCount(details['thinking_tokens']) : null
}

/** Returns the written cache tokens that are kept for an hour; undefined if the block does not say. */
function longTokens(written: unknown): number | undefined {
  return isObject(written) ? (tokenCount(written['ephemeral_1h_input_tokens']) ?? undefined) : undefined
}

/** Returns the `usage` block for this usage. */
export function usageToMessages(usage: TokenUsage): Record<string, number> {
  const { promptTokens, completionTokens, cachedTokens, cacheWriteTokens } = usage
  return {
    input_tokens: Math.max(0, promptTokens - cachedTokens - cacheWriteTokens),
    cache_creation_input_tokens: cacheWriteTokens,
    cache_read_input_tokens: cachedTokens,
    output_tokens: completionTokens,
  }
}
