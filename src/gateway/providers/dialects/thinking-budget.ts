import type { ModelTraits } from '../dialect.ts'

/**
 * The thinking tokens for each level of `reasoning_effort`, for providers that count tokens instead of naming levels. The gateway chose these
 * numbers. Other gateways would convert each of them back to the same level.
 */
const budgets: Readonly<Record<string, number>> = { minimal: 1024, low: 2048, medium: 8192, high: 16_384, xhigh: 32_768, max: 65_536 }

/** Returns whether the caller wants as little thinking as possible: none, or the model's minimum. */
export function wantsLeast(effort: string, traits: ModelTraits): boolean {
  return effort === 'none' || effort === 'minimal' || effort === traits.efforts[0]
}

/**
 * Returns the thinking tokens for a level. Null means that no thinking is requested. When the caller wants as little as possible, a model that always
 * thinks gets `leastTokens`. That is the smallest budget that its provider accepts.
 */
export function thinkingTokens(effort: string, traits: ModelTraits, leastTokens: number): number | null {
  if (traits.alwaysThinks && wantsLeast(effort, traits)) return leastTokens
  if (effort === 'none') return null
  return Math.max(leastTokens, budgets[effort] ?? budgets['medium'] ?? leastTokens)
}
