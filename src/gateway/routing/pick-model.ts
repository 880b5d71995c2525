import type { Preset } from '../catalog/virtual-models.ts'
import type { Candidate } from './candidates.ts'
import type { Attempt, ResolveRequest } from './plan.ts'
import { priceOf, type RouteFacts } from './rank.ts'

/** Share of the window that `auto:long-context` leaves free for the answer. Ours. */
const headroomFactor = 1.25

interface Rule {
  /** Why the model was picked, for `x-br-auto-reason`. */
  readonly reason: string
  /** The less is better. */
  score(attempt: Attempt, facts: RouteFacts, probe: boolean): number
}

const cheapest = (attempt: Attempt): number => priceOf(attempt.route)
const window = ({ route, model }: Candidate): number => route.contextLength ?? model.contextLength ?? 0

/** How a preset picks among what it admits. Presets that need curated or measured rankings are not here: they resolve to nothing. */
const rules: Readonly<Record<string, Rule>> = {
  balanced: { reason: 'cheapest_capable', score: cheapest },
  cheapest: { reason: 'lowest_price', score: cheapest },
  fastest: { reason: 'lowest_latency', score: (_, facts, probe) => facts.latencyMs ?? (probe ? -1 : Number.POSITIVE_INFINITY) },
  reasoning: { reason: 'cheapest_reasoning', score: cheapest },
  vision: { reason: 'cheapest_vision', score: cheapest },
  'long-context': { reason: 'largest_window', score: attempt => -window(attempt) },
  sovereign: { reason: 'cheapest_india_resident', score: cheapest },
}

export interface Pick {
  readonly modelId: string
  readonly reason: string
}

/**
 * The model that a preset picks from what the call can reach, or null when nothing there will do. Routes with an open circuit count
 * only when there is no other; equals go to the first of the catalog. With `probe` a model that was never measured counts as the fastest,
 * so that it gets measured. Pure.
 */
export function pickModel(
  entry: Preset,
  reachable: readonly Attempt[],
  request: ResolveRequest,
  factsOf: (attempt: Attempt) => RouteFacts,
  probe: boolean,
): Pick | null {
  const rule = rules[entry.preset]
  if (!rule) return null
  const capable = reachable.filter(attempt => entry.admits(attempt.model, attempt.route) && canServe(attempt, request, entry))
  const closed = capable.filter(attempt => !factsOf(attempt).open)
  let best: { readonly attempt: Attempt; readonly score: number } | null = null
  for (const attempt of closed.length > 0 ? closed : capable) {
    const score = rule.score(attempt, factsOf(attempt), probe)
    if (best === null || score < best.score) best = { attempt, score }
  }
  return best === null ? null : { modelId: best.attempt.model.id, reason: rule.reason }
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
