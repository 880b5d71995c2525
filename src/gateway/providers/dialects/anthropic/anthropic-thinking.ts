/** How much a request of the messages format thinks, and what it may not say then. */

import { isObject, type JsonObject } from '../../../../platform/values/json.ts'
import type { ModelTraits } from '../../dialect.ts'
import { thinkingTokens } from '../thinking-budget.ts'
import type { ClaudeAbilities } from './claude-version.ts'

/** Least budget that the format takes. Source: its reference, `thinking.budget_tokens`. */
export const leastBudgetTokens = 1024
/** Tokens that are left for the answer where the budget would take all of the ceiling. */
const answerTokens = 256

export interface Thinking {
  /** Fields of the request. */
  readonly fields: Readonly<Record<string, unknown>>
  readonly on: boolean
  /** What had to be left out, or null. */
  readonly dropped: 'reasoning_effort' | null
}

const unsaid: Thinking = { fields: {}, on: false, dropped: null }
const cannot: Thinking = { fields: {}, on: false, dropped: 'reasoning_effort' }

export interface ThinkingCase {
  readonly body: JsonObject
  readonly traits: ModelTraits
  readonly abilities: ClaudeAbilities
  readonly maxTokens: number
  /** A function must be called, which the format refuses beside thinking by budget. */
  readonly forcesTool: boolean
  /** A run of calls goes on whose thinking was not given back. */
  readonly callsWithoutThinking: boolean
}

/**
 * The format's `thinking` for `reasoning_effort`. A value in the format's own words is sent on unchanged. Thinking by budget that is not possible
 * (ceiling at or under the least budget, a forced call, thinking that was not given back) is left out and named.
 */
export function thinkingOf(given: ThinkingCase): Thinking {
  const { body, traits, abilities } = given
  const own = body['thinking']
  if (isObject(own)) return { fields: { thinking: own }, on: own['type'] !== 'disabled', dropped: null }
  const effort = body['reasoning_effort']
  if (typeof effort !== 'string') return unsaid
  return abilities.adaptive ? adaptive(effort, traits) : byBudget(effort, given)
}

function adaptive(effort: string, traits: ModelTraits): Thinking {
  if (effort === 'none' && !traits.alwaysThinks) return { fields: { thinking: { type: 'disabled' } }, on: false, dropped: null }
  const level = effort === 'none' || effort === 'minimal' ? 'low' : effort
  return { fields: { thinking: { type: 'adaptive' }, output_config: { effort: level } }, on: true, dropped: null }
}

function byBudget(effort: string, { traits, maxTokens, forcesTool, callsWithoutThinking }: ThinkingCase): Thinking {
  const wanted = thinkingTokens(effort, traits, leastBudgetTokens)
  if (wanted === null) return { fields: { thinking: { type: 'disabled' } }, on: false, dropped: null }
  if (maxTokens <= leastBudgetTokens || forcesTool || callsWithoutThinking) return cannot
  const budget = Math.min(wanted, Math.max(leastBudgetTokens, maxTokens - answerTokens))
  return { fields: { thinking: { type: 'enabled', budget_tokens: budget } }, on: true, dropped: null }
}
