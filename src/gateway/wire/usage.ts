/** The usage of one call, in the only shape that metering accepts. */
import { isObject } from '../../platform/values/json.ts'
export interface TokenUsage {
  /** The whole prompt, including the cached tokens that were read and written. */
  readonly promptTokens: number
  readonly completionTokens: number
  /** Part of the prompt that the provider read from its cache. */
  readonly cachedTokens: number
  /** Part of the prompt that the provider wrote to its cache. */
  readonly cacheWriteTokens: number
  /** The part of `cacheWriteTokens` that the provider keeps for one hour instead of five minutes. Left out: the provider does not say. */
  readonly cacheWriteLongTokens?: number
  /** The part of the prompt that was sound. Left out: there was none, or the provider does not say. */
  readonly audioTokens?: number
  /** Part of the completion that was reasoning. */
  readonly reasoningTokens: number
  /** Units of calls that are not text. */
  readonly media?: MediaUsage
  /**
   * Says which number of the provider was far outside the plausible range. This usage then contains a plausible number instead. Left out: all numbers were
   * plausible.
   */
  readonly doubt?: UsageDoubt
  /** True: the provider has not reported the prompt, so `promptTokens` is the gateway's estimate. Left out: it is reported, or its origin makes no difference. */
  readonly isPromptGuessed?: true
}

/** Names the implausible number of a provider, and its direction. */
export type UsageDoubt = 'input_above' | 'input_below' | 'output_above' | 'output_below'

/** Units of images and audio. */
export interface MediaUsage {
  /** The number of images that were delivered. */
  readonly images: number
  /** True: the request asked for images that are larger, better, or made with more steps than plain images. */
  readonly dear?: true
  /** True: neither the request nor the reply says how good or large the images are, so the provider may have made the most expensive kind. */
  readonly open?: true
  /** The number of pictures in the request that were to be edited. They are charged together with the first delivered image. */
  readonly inputs?: number
  /** Seconds of audio input. Each started second counts. */
  readonly audioSeconds: number
  /** Characters of text that were turned into speech. */
  readonly characters: number
  /** Searches of a ranking: each is one query with at most 100 documents. Left out: none. */
  readonly searches?: number
}

export const noUsage: TokenUsage = Object.freeze({ promptTokens: 0, completionTokens: 0, cachedTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 })

/** Returns the usage of a prompt and a completion without cached tokens. */
export function plainUsage(promptTokens: number, completionTokens: number): TokenUsage {
  return { promptTokens, completionTokens, cachedTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 }
}

/** UTF-8 bytes of text that count as one token. The number is deliberately low, because a hold should be too large rather than too small. */
export const bytesPerToken = 3

/** Maximum plausible number of tokens of a reply. It is more than any current model can use, and far below the largest number that the database can store. */
const tokensMax = 1_000_000_000

/** Returns the tokens for a number of bytes or characters, rounded up. */
export function estimateTokens(chars: number): number {
  return Math.ceil(chars / bytesPerToken)
}

/**
 * Reads the `usage` block of an OpenAI-shaped chat reply. Cached tokens are part of the prompt and reasoning tokens are part of the completion, so neither
 * can exceed its whole. Moonshot and DeepSeek report cached tokens beside the details. Some providers, such as xAI, do not include reasoning in the
 * completion. If the total shows this, the reasoning tokens are added. Returns null if there is no block, or if the number of prompt or completion tokens
 * is missing or is not between 0 and a thousand million.
 */
export function usageFromOpenAi(usage: unknown): TokenUsage | null {
  if (!isObject(usage)) return null
  const promptTokens = tokenCount(usage['prompt_tokens'])
  const completionTokens = tokenCount(usage['completion_tokens'])
  if (promptTokens === null || completionTokens === null) return null
  const cachedTokens = Math.min(promptTokens, cachedOf(usage))
  const audioTokens = Math.min(promptTokens, detail(usage['prompt_tokens_details'], 'audio_tokens'))
  const details = usage['prompt_tokens_details']
  const cacheWriteLongTokens = isObject(details) ? tokenCount(details['cache_write_1h_tokens']) : null
  const reasoning = detail(usage['completion_tokens_details'], 'reasoning_tokens')
  const isBeside = reasoning > 0 && (tokenCount(usage['total_tokens']) ?? 0) >= promptTokens + completionTokens + reasoning
  const plain = {
    promptTokens,
    completionTokens: isBeside ? completionTokens + reasoning : completionTokens,
    cachedTokens,
    cacheWriteTokens: Math.min(promptTokens - cachedTokens, detail(usage['prompt_tokens_details'], 'cache_write_tokens')),
    reasoningTokens: isBeside ? reasoning : Math.min(completionTokens, reasoning),
  }
  if (cacheWriteLongTokens === null && audioTokens === 0) return plain
  return { ...plain, ...(cacheWriteLongTokens === null ? {} : { cacheWriteLongTokens }), ...(audioTokens === 0 ? {} : { audioTokens }) }
}

/** Reads the `usage` block of an embeddings reply, which has no completion. */
export function usageOfEmbeddings(usage: unknown): TokenUsage | null {
  return isObject(usage) ? usageFromOpenAi({ ...usage, completion_tokens: usage['completion_tokens'] ?? 0 }) : null
}

/** Returns the `usage` block of an OpenAI-shaped chat reply for this usage. */
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

/** Returns the cached tokens. They are in the details, or at the top of the block, where Moonshot (`cached_tokens`) and DeepSeek put them. */
function cachedOf({
  prompt_tokens_details: details,
  cached_tokens: atMoonshot,
  prompt_cache_hit_tokens: atDeepSeek,
}: Readonly<Record<string, unknown>>): number {
  const told = isObject(details) ? tokenCount(details['cached_tokens']) : null
  return told ?? tokenCount(atMoonshot) ?? tokenCount(atDeepSeek) ?? 0
}

function detail(details: unknown, name: string): number {
  return isObject(details) ? (tokenCount(details[name]) ?? 0) : 0
}

/** Returns a plausible number of tokens, rounded up; null for any other value. */
export function tokenCount(value: unknown): number | null {
  return typeof value === 'number' && value >= 0 && value <= tokensMax ? Math.ceil(value) : null
}
