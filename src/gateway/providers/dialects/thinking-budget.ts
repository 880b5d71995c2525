import type { ModelTraits } from '../dialect.ts'

/**
 * Tokens of thinking for a level of `reasoning_effort`, when a provider counts tokens instead of naming levels. Ours; they are within the ranges in
 * which other gateways read budgets back as the same level.
 */
const budgets: Readonly<Record<string, number>> = { minimal: 1024, low: 2048, medium: 8192, high: 16_384, xhigh: 32_768, max: 65_536 }

/** True when the caller wants the least possible thinking: none, or the minimum of the model. */
export function wantsLeast(effort: string, traits: ModelTraits): boolean {
  return effort === 'none' || effort === 'minimal' || effort === traits.efforts[0]
}

/**
 * Thinking tokens for a level; null = no thinking is asked for. A model that cannot do without gets `leastTokens`, the smallest budget that
 * its provider takes, where the caller wants none or the least.
 */
export function thinkingTokens(effort: string, traits: ModelTraits, leastTokens: number): number | null {
  if (traits.alwaysThinks && wantsLeast(effort, traits)) return leastTokens
  if (effort === 'none') return null
  return Math.max(leastTokens, budgets[effort] ?? budgets['medium'] ?? leastTokens)
}
