import type { Rankings } from '../../catalog/rankings.ts'
import type { Preset } from '../../catalog/virtual-models.ts'
import type { Candidate } from '../candidates.ts'
import type { Attempt, ResolveRequest } from '../plan.ts'
import type { Classified } from '../prompts/classify.ts'
import { priceOf, type RouteFacts } from './rank.ts'

/** `auto:long-context` needs a context window of at least this multiple of the prompt. The rest is room for the answer. Our choice. */
const headroomFactor = 1.25
/** A route with this share of broken tool calls or more counts as corrupting them. Smaller shares are compared in steps of `corruptStep`. Our choice. */
const corruptFrom = 0.2
const corruptStep = 0.05

/** What a rule uses in addition to the attempt and its measurements. */
export interface PickContext {
  readonly rankings: Rankings
  /** The classification of the prompt. */
  readonly classified: Classified
  /** True when an unmeasured model counts as the fastest. It then gets a call and is measured. */
  readonly probe: boolean
}

/** A lower score is better. Scores are compared element by element. Null means that the model must not be picked. */
type Score = readonly number[] | null

type Rule = (attempt: Attempt, facts: RouteFacts, context: PickContext) => { readonly score: Score; readonly reason: string }

const price = (attempt: Attempt): number => priceOf(attempt.route)
const window = ({ route, model }: Candidate): number => route.contextLength ?? model.contextLength ?? 0
const place = (ids: readonly string[], { model }: Attempt): number => {
  const index = ids.indexOf(model.id)
  return index < 0 ? Number.POSITIVE_INFINITY : index
}
const byPrice =
  (reason: string): Rule =>
  attempt => ({ score: [price(attempt)], reason })

/** How each preset scores the models that it admits. */
const rules: Readonly<Record<string, Rule>> = {
  balanced(attempt, _facts, context) {
    const [shortfall, foreign] = incapacity(attempt, context)
    return { score: [shortfall, foreign, price(attempt)], reason: shortfall === 0 ? 'cheapest_capable' : 'most_capable_reachable' }
  },
  cheapest: byPrice('lowest_price'),
  fastest: (attempt, facts, { probe }) => ({
    score: [facts.latencyMs ?? (probe ? -1 : Number.POSITIVE_INFINITY), price(attempt)],
    reason: facts.latencyMs === null ? 'not_measured_yet' : 'lowest_latency',
  }),
  best(attempt, _facts, { rankings, classified }) {
    const rank = place(rankings.capabilities[classified.capability], attempt)
    return { score: rank === Number.POSITIVE_INFINITY ? null : [rank], reason: `rank_${rank + 1}_of_${classified.capability}` }
  },
  agent(attempt, facts, { rankings }) {
    const measured = Math.floor((facts.brokenToolCalls ?? 0) / corruptStep)
    const rank = place(rankings.toolCalls, attempt)
    return {
      score: corruptsToolCalls(attempt, facts, rankings) ? null : [measured, rank, price(attempt)],
      reason: rank === Number.POSITIVE_INFINITY ? 'cheapest_with_tools' : 'tool_call_reliability',
    }
  },
  code(attempt, _facts, { rankings }) {
    const rank = place(rankings.capabilities.code, attempt)
    return { score: [rank, price(attempt)], reason: rank === Number.POSITIVE_INFINITY ? 'cheapest_with_tools' : `rank_${rank + 1}_of_code` }
  },
  reasoning: byPrice('cheapest_reasoning'),
  vision: byPrice('cheapest_vision'),
  'long-context': attempt => ({ score: [-window(attempt), price(attempt)], reason: 'largest_window' }),
  sovereign: byPrice('cheapest_india_resident'),
}

/**
 * Returns two numbers: how far a model is below the complexity of the prompt, and 1 when it lacks the prompt's language. A model in the ranking of
 * the capability is good enough for complexity 2, whatever its tier.
 */
function incapacity(attempt: Attempt, { rankings, classified }: PickContext): readonly [shortfall: number, foreign: number] {
  const { capability, complexity, language } = classified
  const tier = rankings.tiers.get(attempt.model.id) ?? 1
  const able = tier < 2 && rankings.capabilities[capability].includes(attempt.model.id) ? 2 : tier
  const foreign = language === null || language === 'other' || attempt.model.languages.includes(language) ? 0 : 1
  return [Math.max(0, complexity - able), foreign]
}

/** Returns whether a route is known to break the arguments of tool calls: the catalog lists it, or this process has measured it. */
export function corruptsToolCalls({ route, model }: Candidate, facts: RouteFacts, rankings: Rankings): boolean {
  return rankings.corruptsToolCalls.has(`${route.provider.id}/${model.id}`) || (facts.brokenToolCalls ?? 0) >= corruptFrom
}

export interface Pick {
  readonly modelId: string
  readonly reason: string
}

/**
 * Returns the model that a preset picks from the reachable attempts. Returns null when none fits. A route with an open circuit is picked only when
 * there is no other. Of equal scores, the first in the catalog wins. The function is pure.
 */
export function pickModel(entry: Preset, capable: readonly Attempt[], factsOf: (attempt: Attempt) => RouteFacts, context: PickContext): Pick | null {
  const rule = rules[entry.preset]
  if (!rule) return null
  let best: (Pick & { readonly score: readonly number[] }) | null = null
  for (const attempt of capable) {
    const facts = factsOf(attempt)
    const { score, reason } = rule(attempt, facts, context)
    if (score === null) continue
    const whole = [facts.open ? 1 : 0, ...score]
    if (best === null || isLess(whole, best.score)) best = { modelId: attempt.model.id, reason, score: whole }
  }
  return best
}

function isLess(a: readonly number[], b: readonly number[]): boolean {
  for (const [index, value] of a.entries()) {
    const other = b[index] ?? 0
    if (value !== other) return value < other
  }
  return false
}

/** Returns whether the model accepts what the request contains, and the context window of the route is large enough. */
export function canServe(attempt: Candidate, { promptTokens, needs }: ResolveRequest, entry: Preset): boolean {
  const { model } = attempt
  if (needs?.tools === true && !model.tools) return false
  if (needs?.vision === true && !model.modalities.includes('image')) return false
  const needed = entry.preset === 'long-context' ? promptTokens * headroomFactor : promptTokens
  const known = window(attempt)
  // An unknown window counts as large enough, unless the preset chooses by window.
  return known === 0 ? entry.preset !== 'long-context' : needed < known
}
