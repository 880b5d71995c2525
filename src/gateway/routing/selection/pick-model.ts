import type { Rankings } from '../../catalog/rankings.ts'
import type { Preset } from '../../catalog/virtual-models.ts'
import type { Candidate } from '../candidates.ts'
import type { Attempt, ResolveRequest } from '../plan.ts'
import type { Classified } from '../prompts/classify.ts'
import { priceOf, type RouteFacts } from './rank.ts'

/** Share of the window that `auto:long-context` leaves free for the answer. Ours. */
const headroomFactor = 1.25
/** Share of broken tool calls from which on a route is known to corrupt them, and the step in which it counts below that. Ours. */
const corruptFrom = 0.2
const corruptStep = 0.05

/** What a choice looks at beside the route. */
export interface PickContext {
  readonly rankings: Rankings
  /** What the prompt asks for. */
  readonly classified: Classified
  /** True: a model that was never measured counts as the fastest, so that it gets measured. */
  readonly probe: boolean
}

/** The less is better; compared element by element. null: not to be picked. */
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

/** How a preset picks among what it admits. */
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
 * How far a model is from what the prompt needs, and whether it lacks the prompt's language. A model on the ranking of the capability is good
 * enough for prompts of middling difficulty, whatever its tier.
 */
function incapacity(attempt: Attempt, { rankings, classified }: PickContext): readonly [shortfall: number, foreign: number] {
  const { capability, complexity, language } = classified
  const tier = rankings.tiers.get(attempt.model.id) ?? 1
  const able = tier < 2 && rankings.capabilities[capability].includes(attempt.model.id) ? 2 : tier
  const foreign = language === null || language === 'other' || attempt.model.languages.includes(language) ? 0 : 1
  return [Math.max(0, complexity - able), foreign]
}

/** Whether a route is known to break the arguments of tool calls: it is on the list, or it has been seen to do so here. */
export function corruptsToolCalls({ route, model }: Candidate, facts: RouteFacts, rankings: Rankings): boolean {
  return rankings.corruptsToolCalls.has(`${route.provider.id}/${model.id}`) || (facts.brokenToolCalls ?? 0) >= corruptFrom
}

export interface Pick {
  readonly modelId: string
  readonly reason: string
}

/**
 * The model that a preset picks from what the call can reach, or null when nothing there will do. Routes with an open circuit count
 * only when there is no other; equals go to the first of the catalog. Pure.
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

/** Whether the model takes what the request carries, and the route's window is large enough for it. */
export function canServe(attempt: Candidate, { promptTokens, needs }: ResolveRequest, entry: Preset): boolean {
  const { model } = attempt
  if (needs?.tools === true && !model.tools) return false
  if (needs?.vision === true && !model.modalities.includes('image')) return false
  const needed = entry.preset === 'long-context' ? promptTokens * headroomFactor : promptTokens
  const known = window(attempt)
  // An unknown window is taken for large enough, except where the window is what is asked for.
  return known === 0 ? entry.preset !== 'long-context' : needed < known
}
