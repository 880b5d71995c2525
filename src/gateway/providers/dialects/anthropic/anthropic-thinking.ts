/** Decides how much thinking a request of the messages format asks for, and which fields it must then leave out. */

import { isObject, type JsonObject } from '../../../../platform/values/json.ts'
import type { ModelTraits } from '../../dialect.ts'
import { thinkingTokens } from '../thinking-budget.ts'
import type { ClaudeAbilities } from './claude-version.ts'

/** The smallest budget that the format accepts. Source: its reference, `thinking.budget_tokens`. */
export const leastBudgetTokens = 1024
/** Tokens that are left for the answer when the thinking budget would take the whole limit. */
const answerTokens = 256

export interface Thinking {
  /** Fields of the request. */
  readonly fields: Readonly<Record<string, unknown>>
  readonly on: boolean
  /** The field that had to be left out. Null when there is none. */
  readonly dropped: 'reasoning_effort' | null
}

const unsaid: Thinking = { fields: {}, on: false, dropped: null }
const cannot: Thinking = { fields: {}, on: false, dropped: 'reasoning_effort' }

export interface ThinkingCase {
  readonly body: JsonObject
  readonly traits: ModelTraits
  readonly abilities: ClaudeAbilities
  readonly maxTokens: number
  /** True when the request forces a function call. The format refuses that together with a thinking budget. */
  readonly forcesTool: boolean
  /** True when the request continues a series of calls and the caller did not send back the thinking of that series. */
  readonly callsWithoutThinking: boolean
}

/**
 * Returns the format's `thinking` for `reasoning_effort`. A value in the format's own terms is sent unchanged. A thinking budget is impossible when
 * the limit is not above the smallest budget, when a call is forced, or when thinking was not sent back. In these cases the budget is left out and
 * reported.
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
