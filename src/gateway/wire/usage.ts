/** What one call used, in the one shape that metering knows. */
import { isObject } from '../../platform/values/json.ts'
export interface TokenUsage {
  /** The whole prompt; cached tokens, read and written, are part of it. */
  readonly promptTokens: number
  readonly completionTokens: number
  /** Part of the prompt that the provider read from its cache. */
  readonly cachedTokens: number
  /** Part of the prompt that the provider wrote to its cache. */
  readonly cacheWriteTokens: number
  /** Part of those that it keeps for an hour and not for five minutes; left out: the provider does not tell. */
  readonly cacheWriteLongTokens?: number
  /** Part of the prompt that was sound; left out: none, or the provider does not say. */
  readonly audioTokens?: number
  /** Part of the completion that was reasoning. */
  readonly reasoningTokens: number
  /** Units of calls that are not text. */
  readonly media?: MediaUsage
  /** The provider's own figure was far from what was asked or shown, above or below, and these are what can be true of it. Left out: they fit. */
  readonly doubt?: UsageDoubt
}

/** Which figure of a provider does not fit, and to which side. */
export type UsageDoubt = 'input_above' | 'input_below' | 'output_above' | 'output_below'

/** Units of images and audio. */
export interface MediaUsage {
  /** Images that were delivered. */
  readonly images: number
  /** They were asked for larger, better or with more steps than plain ones. */
  readonly dear?: true
  /** Nobody has said how good or large they are: a provider that chooses may have made the dearest. */
  readonly open?: true
  /** Pictures that came with the request, to be edited. They count with the first that is delivered. */
  readonly inputs?: number
  /** Seconds of audio input, each begun second counted. */
  readonly audioSeconds: number
  /** Characters of text that were spoken. */
  readonly characters: number
}

export const noUsage: TokenUsage = Object.freeze({ promptTokens: 0, completionTokens: 0, cachedTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 })

/** Usage of prompt and completion with nothing cached. */
export function plainUsage(promptTokens: number, completionTokens: number): TokenUsage {
  return { promptTokens, completionTokens, cachedTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 }
}

/** UTF-8 bytes that one token is taken for. Low on purpose: an estimate rather holds too much money than too little. */
export const bytesPerToken = 3

/** Most tokens that a reply is believed to have used: beyond every model of today, and far below what the books can hold. */
const tokensMax = 1_000_000_000

/** The tokens for a number of bytes or characters, rounded up. */
export function estimateTokens(chars: number): number {
  return Math.ceil(chars / bytesPerToken)
}

/**
 * The `usage` block of an OpenAI-shaped chat reply, or null when there is none worth metering. Cached tokens are part of the prompt and
 * reasoning tokens part of the completion, so neither can be more than its whole. Where the total says that a provider counts reasoning beside
 * the completion, as xAI does, it is added. Figures that are no numbers from 0 to a thousand
 * million, and missing ones, make the block worthless.
 */
export function usageFromOpenAi(usage: unknown): TokenUsage | null {
  if (!isObject(usage)) return null
  const promptTokens = tokenCount(usage['prompt_tokens'])
  const completionTokens = tokenCount(usage['completion_tokens'])
  if (promptTokens === null || completionTokens === null) return null
  const cachedTokens = Math.min(promptTokens, detail(usage['prompt_tokens_details'], 'cached_tokens'))
  const audioTokens = Math.min(promptTokens, detail(usage['prompt_tokens_details'], 'audio_tokens'))
  const details = usage['prompt_tokens_details']
  const cacheWriteLongTokens = isObject(details) ? tokenCount(details['cache_write_1h_tokens']) : null
  const reasoning = detail(usage['completion_tokens_details'], 'reasoning_tokens')
  const isBeside = reasoning > 0 && (tokenCount(usage['total_tokens']) ?? 0) >= promptTokens + completionTokens + reasoning
  return {
    promptTokens,
    completionTokens: isBeside ? completionTokens + reasoning : completionTokens,
    cachedTokens,
    cacheWriteTokens: Math.min(promptTokens - cachedTokens, detail(usage['prompt_tokens_details'], 'cache_write_tokens')),
    ...(cacheWriteLongTokens === null ? {} : { cacheWriteLongTokens }),
    ...(audioTokens === 0 ? {} : { audioTokens }),
    reasoningTokens: isBeside ? reasoning : Math.min(completionTokens, reasoning),
  }
}

/** The same of an embeddings reply, which completes nothing. */
export function usageOfEmbeddings(usage: unknown): TokenUsage | null {
  return isObject(usage) ? usageFromOpenAi({ ...usage, completion_tokens: usage['completion_tokens'] ?? 0 }) : null
}

/** The `usage` block of an OpenAI-shaped chat reply that says this. */
export function usageToOpenAi(usage: TokenUsage): Record<string, unknown> {
  const { promptTokens, completionTokens, cachedTokens, cacheWriteTokens, cacheWriteLongTokens, reasoningTokens, audioTokens = 0 } = usage
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    prompt_tokens_details: {
      cached_tokens: cachedTokens,
      ...(cacheWriteTokens === 0 ? {} : { cache_write_tokens: cacheWriteTokens }),
      ...(cacheWriteTokens === 0 || cacheWriteLongTokens === undefined ? {} : { cache_write_1h_tokens: cacheWriteLongTokens }),
      ...(audioTokens === 0 ? {} : { audio_tokens: audioTokens }),
    },
    completion_tokens_details: { reasoning_tokens: reasoningTokens },
  }
}

function detail(details: unknown, name: string): number {
  return isObject(details) ? (tokenCount(details[name]) ?? 0) : 0
}

/** A believable number of tokens, rounded up; null for anything else. */
export function tokenCount(value: unknown): number | null {
  return typeof value === 'number' && value >= 0 && value <= tokensMax ? Math.ceil(value) : null
}
