/** Translates the settings of a hub request to Gemini's `generationConfig`. */

import { isObject, type JsonObject } from '../../../../platform/values/json.ts'
import type { ModelTraits } from '../../dialect.ts'
import { describedSchema } from '../anthropic/anthropic-format.ts'
import { isAbsent } from '../json-values.ts'
import { thinkingTokens } from '../thinking-budget.ts'
import { geminiSchema } from './gemini-schema.ts'

/** Maximum number of stop strings that Gemini accepts. */
const stopsMax = 5
/** The largest thinking budget that all models with token budgets accept. */
const budgetMaxTokens = 24_576
/** The smallest thinking budget of a model with token budgets that always thinks. */
const leastBudgetTokens = 128
/** Tokens that are left for the answer when the thinking budget would take the whole limit. */
const answerTokens = 256

/**
 * Returns whether a Gemini model takes a thinking level instead of a token budget. That is so from version 3 on. These models also check the
 * signatures of calls.
 */
export function thinksByLevel(upstreamModel: string): boolean {
  const version = /gemini-(\d+)/.exec(upstreamModel)
  return version !== null && Number(version[1]) >= 3
}

/** Returns the settings of the request. Settings that the caller left out are left out here too. */
export function generationConfigOf(body: JsonObject, upstreamModel: string, traits: ModelTraits, dropped: Set<string>): Record<string, unknown> {
  const given = (name: string): number | undefined => (typeof body[name] === 'number' ? body[name] : undefined)
  const ceilings = [given('max_tokens'), given('max_completion_tokens')].filter(value => value !== undefined)
  const maxOutputTokens = ceilings.length === 0 ? undefined : Math.min(...ceilings)
  const answers = given('n')
  const config = {
    temperature: given('temperature'),
    topP: given('top_p'),
    topK: given('top_k'),
    candidateCount: answers === 1 ? undefined : answers,
    maxOutputTokens,
    stopSequences: stopsOf(body['stop'], dropped),
    presencePenalty: given('presence_penalty') || undefined,
    frequencyPenalty: given('frequency_penalty') || undefined,
    seed: given('seed'),
    ...formatOf(body['response_format'], dropped),
    thinkingConfig: thinkingOf(body['reasoning_effort'], upstreamModel, traits, maxOutputTokens ?? null, dropped),
  }
  return Object.fromEntries(Object.entries(config).filter(([, value]) => value !== undefined))
}

function stopsOf(stop: unknown, dropped: Set<string>): string[] | undefined {
  if (isAbsent(stop)) return undefined
  const given: readonly unknown[] = Array.isArray(stop) ? stop : [stop]
  const kept = given.filter(text => typeof text === 'string' && text !== '').slice(0, stopsMax) as string[]
  if (kept.length < given.length) dropped.add('stop')
  return kept.length === 0 ? undefined : kept
}

function formatOf(wanted: unknown, dropped: Set<string>): Record<string, unknown> {
  if (!isObject(wanted) || wanted['type'] === 'text') return {}
  const described = isObject(wanted['json_schema']) ? wanted['json_schema'] : {}
  if (wanted['type'] === 'json_object') return { responseMimeType: 'application/json' }
  if (wanted['type'] !== 'json_schema' || !isObject(described['schema'])) {
    dropped.add('response_format')
    return {}
  }
  const at = 'response_format.json_schema.schema'
  return { responseMimeType: 'application/json', responseSchema: geminiSchema(describedSchema(described), at, dropped) }
}

/**
 * Returns the thinking settings. A request that asks for thinking also asks for the thoughts. Otherwise the caller would pay for text that it cannot
 * read.
 */
function thinkingOf(
  effort: unknown,
  upstreamModel: string,
  traits: ModelTraits,
  maxTokens: number | null,
  dropped: Set<string>,
): Record<string, unknown> | undefined {
  if (typeof effort !== 'string') return undefined
  if (!traits.reasoning && traits.supportedParameters.length > 0) {
    dropped.add('reasoning_effort')
    return undefined
  }
  if (thinksByLevel(upstreamModel)) return { thinkingLevel: levelOf(effort, traits), includeThoughts: true }
  const least = traits.alwaysThinks ? leastBudgetTokens : 0
  const wanted = thinkingTokens(effort, traits, least)
  if (wanted === null || wanted === 0) return { thinkingBudget: 0 }
  const room = maxTokens === null ? budgetMaxTokens : Math.max(leastBudgetTokens, maxTokens - answerTokens)
  return { thinkingBudget: Math.min(wanted, budgetMaxTokens, room), includeThoughts: true }
}

function levelOf(effort: string, traits: ModelTraits): string {
  if (effort === 'xhigh' || effort === 'max') return 'high'
  if (effort !== 'none' && effort !== 'minimal') return effort
  return traits.efforts.length === 0 || traits.efforts.includes('minimal') ? 'minimal' : (traits.efforts[0] ?? 'low')
}
