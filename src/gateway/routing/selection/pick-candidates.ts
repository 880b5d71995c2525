import { type Allowance, allowanceOf } from '../../catalog/allowance.ts'
import { isSandbox } from '../../catalog/loading/sandbox.ts'
import { type Preset, presetOf } from '../../catalog/virtual-models.ts'
import { type Candidate, candidatesOf, isExcluded, meetsResidency } from '../candidates.ts'
import { customCandidate, isCustomReference } from '../own-models.ts'
import type { Attempt, ResolveRequest } from '../plan.ts'
import { type Classified, classify } from '../prompts/classify.ts'
import { factsOf, type RoutingWorld } from '../routing-world.ts'
import { reachable } from './order.ts'
import { canServe, corruptsToolCalls, type Pick, pickModel } from './pick-model.ts'

export interface Picked {
  readonly modelId: string
  /** The routes of the model that the preset admits and that can serve the request. */
  readonly candidates: readonly Candidate[]
  readonly reason: string
  /** Null for presets that do not read the prompt. */
  readonly classified: Classified | null
  /** True when unmeasured routes come first in this ranking. */
  readonly probe: boolean
}

/** The reason in the headers when quality prediction found no model. */
export const failOpen = 'fail_open'

const readsPrompt = (entry: Preset): boolean => entry.preset === 'best' || entry.preset === 'balanced'
const notRead: Classified = { capability: 'general', complexity: 1, cue: 'no_cue', language: null }

/** Classifies the prompt of a request. */
export const classified = (request: ResolveRequest): Classified => classify(request.promptText?.() ?? '', request.promptTokens)

/**
 * Returns the model that a preset chooses for this caller, with its admitted routes. Returns null when no reachable model fits. The balanced preset
 * chooses in place of `best` when there is no prompt, or when no ranked model is reachable.
 */
export function pick(entry: Preset, request: ResolveRequest, world: RoutingWorld): Picked | null {
  if (entry.preset !== 'best') return pickBy(entry, request, world)
  const predicted = pickRanked(request, world)
  if (predicted !== null) return predicted
  const balanced = presetOf('auto:balanced')
  const picked = balanced === undefined ? null : pickBy(balanced, request, world)
  return picked === null ? null : { ...picked, reason: failOpen }
}

/** Returns the best reachable model in the ranking for the prompt. Returns null without a prompt, or when no model of the ranking is reachable. */
export function pickRanked(request: ResolveRequest, world: RoutingWorld): Picked | null {
  const best = presetOf('auto:best')
  return best === undefined || (request.promptText?.() ?? '') === '' ? null : pickBy(best, request, world)
}

function pickBy(entry: Preset, request: ResolveRequest, world: RoutingWorld): Picked | null {
  const found = readsPrompt(entry) ? classified(request) : null
  const capable = capableOf(entry, request, world)
  const probe = entry.preset === 'fastest' && world.health.probeIsDue()
  const context = { rankings: world.catalog.rankings, classified: found ?? notRead, probe }
  const picked = keptPick(capable, request, world) ?? pickModel(entry, capable, attempt => factsOf(attempt.route, world), context)
  if (!picked) return null
  const routes = new Map(capable.flatMap(({ model, route }) => (model.id === picked.modelId ? [[route, model] as const] : [])))
  return { ...picked, candidates: [...routes].map(([route, model]) => ({ model, route })), classified: found, probe }
}

/** The reason in the headers when a conversation keeps its model. */
const sameConversation = 'same_conversation'

/** Returns the model that was picked for the conversation, if it can serve this call too on a route whose circuit is closed. */
function keptPick(capable: readonly Attempt[], { keptModel }: ResolveRequest, world: RoutingWorld): Pick | null {
  if (keptModel === undefined) return null
  const canStay = capable.some(({ model, route }) => model.id === keptModel && !factsOf(route, world).open)
  return canStay ? { modelId: keptModel, reason: sameConversation } : null
}

/** Returns the reachable attempts that the preset admits. Each of them satisfies the hard constraints and can serve what the request contains. */
function capableOf(entry: Preset, request: ResolveRequest, world: RoutingWorld): readonly Attempt[] {
  const { fields } = request
  const everything = reachable(poolOf(entry, request, world), request, world)
  const real = everything.filter(({ route }) => !isSandbox(route.provider))
  return (real.length > 0 ? real : everything).filter(
    attempt =>
      entry.admits(attempt.model, attempt.route) &&
      meetsResidency(attempt, fields) &&
      !isExcluded(attempt, fields) &&
      (fields.provider === null || attempt.route.provider.id === fields.provider) &&
      canServe(attempt, request, entry) &&
      (entry.preset !== 'agent' || !corruptsToolCalls(attempt, factsOf(attempt.route, world), world.catalog.rankings)),
  )
}

/** Returns every candidate that the preset may consider: the chat models that the caller may use, on the providers that the caller may use. */
export function poolOf(entry: Preset, request: ResolveRequest, world: RoutingWorld): readonly Candidate[] {
  const { org, fields, policies } = request
  const allowance = allowanceOf(policies)
  const chats = [...world.catalog.models.values()].filter(
    model => model.kind === 'chat' && (!model.gated || org.retentionDays > 0) && (allowance?.pick(entry.id, model.id) ?? true),
  )
  if (fields.provider !== null && isCustomReference(fields.provider)) {
    const reference = fields.provider
    return chats.flatMap(model => customCandidate(reference, model, org) ?? [])
  }
  return onAllowedProviders(chats.flatMap(candidatesOf), allowance)
}

const onAllowedProviders = (candidates: readonly Candidate[], allowance: Allowance | null): readonly Candidate[] =>
  allowance === null ? candidates : candidates.filter(({ route }) => allowance.provider(route.provider.id))
