/** Tokens of one call, in the one shape that metering knows. */
export interface TokenUsage {
  readonly promptTokens: number
  readonly completionTokens: number
  readonly cachedTokens: number
  readonly reasoningTokens: number
}

/** UTF-8 bytes that one token is taken for. Low on purpose: an estimate rather holds too much money than too little. */
export const bytesPerToken = 3

/** Most tokens that a reply is believed to have used: beyond every model of today, and far below what the books can hold. */
const tokensMax = 1_000_000_000

/** Tokens that so many bytes or characters are taken for, rounded up. */
export function estimateTokens(chars: number): number {
  return Math.ceil(chars / bytesPerToken)
}

/**
 * The `usage` block of an OpenAI-shaped chat or embeddings reply, or null when there is none worth metering. A missing
 * `completion_tokens` counts 0 (embeddings); cached tokens are part of the prompt and reasoning tokens part of the completion, so
 * neither can be more than its whole. Figures that are no numbers from 0 to a thousand million make the block worthless.
 */
export function usageFromOpenAi(usage: unknown): TokenUsage | null {
  if (!isObject(usage)) return null
  const promptTokens = count(usage['prompt_tokens'])
  const completionTokens = usage['completion_tokens'] === undefined || usage['completion_tokens'] === null ? 0 : count(usage['completion_tokens'])
  if (promptTokens === null || completionTokens === null) return null
  return {
    promptTokens,
    completionTokens,
    cachedTokens: Math.min(promptTokens, detail(usage['prompt_tokens_details'], 'cached_tokens')),
    reasoningTokens: Math.min(completionTokens, detail(usage['completion_tokens_details'], 'reasoning_tokens')),
  }
}

function detail(details: unknown, name: string): number {
  return isObject(details) ? (count(details[name]) ?? 0) : 0
}

function count(value: unknown): number | null {
  return typeof value === 'number' && value >= 0 && value <= tokensMax ? Math.ceil(value) : null
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
