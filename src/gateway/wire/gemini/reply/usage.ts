import type { JsonObject } from '../../../../platform/values/json.ts'
import type { TokenUsage } from '../../usage.ts'

/** Returns `usageMetadata` for this usage. Thoughts count beside the answer, and a count of zero is left out, as Google does. */
export function usageMetadata({ promptTokens, completionTokens, cachedTokens, reasoningTokens }: TokenUsage): JsonObject {
  return {
    promptTokenCount: promptTokens,
    candidatesTokenCount: completionTokens - reasoningTokens,
    totalTokenCount: promptTokens + completionTokens,
    ...(cachedTokens === 0 ? {} : { cachedContentTokenCount: cachedTokens }),
    ...(reasoningTokens === 0 ? {} : { thoughtsTokenCount: reasoningTokens }),
  }
}
