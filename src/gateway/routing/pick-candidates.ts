import { type Allowance, allowanceOf } from '../catalog/allowance.ts'
import { isSandbox } from '../catalog/sandbox.ts'
import type { Preset } from '../catalog/virtual-models.ts'
import { type Candidate, candidatesOf, isExcluded, meetsResidency } from './candidates.ts'
import { reachable } from './order.ts'
import { customCandidate, isCustomReference } from './own-models.ts'
import { pickModel } from './pick-model.ts'
import type { ResolveRequest } from './plan.ts'
import { factsOf, type RoutingWorld } from './routing-world.ts'

export interface Picked {
  readonly modelId: string
  /** Its routes that the preset admits. */
  readonly candidates: readonly Candidate[]
  readonly reason: string
}

/** The model that a preset chooses for this caller, with its admitted routes; null when nothing reachable satisfies it. */
export function pick(entry: Preset, request: ResolveRequest, world: RoutingWorld): Picked | null {
  const { fields } = request
  const everything = reachable(poolOf(entry, request, world), request, world)
  const real = everything.filter(({ route }) => !isSandbox(route.provider))
  const left = (real.length > 0 ? real : everything).filter(
    attempt => meetsResidency(attempt, fields) && !isExcluded(attempt, fields) && (fields.provider === null || attempt.route.provider.id === fields.provider),
  )
  const probe = entry.preset === 'fastest' && world.health.probeIsDue()
  const picked = pickModel(entry, left, request, attempt => factsOf(attempt.route, world), probe)
  if (!picked) return null
  const routes = new Map(left.flatMap(({ model, route }) => (model.id === picked.modelId && entry.admits(model, route) ? [[route, model] as const] : [])))
  return { modelId: picked.modelId, candidates: [...routes].map(([route, model]) => ({ model, route })), reason: picked.reason }
}

/** Everything that the preset may look at: chat models that the caller may use, on providers that it may use. */
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
