import type { ModelTraits } from '../dialect.ts'

/**
 * The thinking tokens for each level of `reasoning_effort`, for providers that count tokens instead of naming levels. The gateway chose these numbers. They are
 * within the ranges in which other gateways convert budgets back to the same level.
 */
const budgets: Readonly<Record<string, number>> = { minimal: 1024, low: 2048, medium: 8192, high: 16_384, xhigh: 32_768, max: 65_536 }

/** True if the caller wants the least possible thinking: none, or the minimum of the model. */
export function wantsLeast(effort: string, traits: ModelTraits): boolean {
  return effort === 'none' || effort === 'minimal' || effort === traits.efforts[0]
}

/**
 * Returns the thinking tokens for a level; null: no thinking is requested. If the caller wants none or the least, a model that always thinks gets
 * `leastTokens`, the smallest budget that its provider accepts.
 */
export function thinkingTokens(effort: string, traits: ModelTraits, leastTokens: number): number | null {
  if (traits.alwaysThinks && wantsLeast(effort, traits)) return leastTokens
  if (effort === 'none') return null
  return Math.max(leastTokens, budgets[effort] ?? budgets['medium'] ?? leastTokens)
}
