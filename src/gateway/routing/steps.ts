/** Finds the routes that a request names, before the checks of residency, exclusions and credentials. */
import { fail, GatewayError } from '../../platform/errors.ts'
import { nearest } from '../../platform/nearest.ts'
import { type Allowance, allowanceOf } from '../catalog/allowance.ts'
import { sandboxModelIds } from '../catalog/loading/sandbox.ts'
import type { CatalogSnapshot, Model } from '../catalog/model.ts'
import { presetOf } from '../catalog/virtual-models.ts'
import type { ChainStep } from '../wire/chat/router-fields.ts'
import { type Candidate, candidatesOf } from './candidates.ts'
import { customCandidate, isCustomReference, ownModel, splitOwnId } from './own-models.ts'
import type { ResolveRequest, ServedKind } from './plan.ts'
import type { RoutingWorld } from './routing-world.ts'
import { pick } from './selection/pick-candidates.ts'

/** Groups of candidates. All attempts of one group come before those of the next group. */
export type Steps = readonly (readonly Candidate[])[]

/**
 * Returns the model that a request names. Throws `model_not_found` (`model_not_found_media` for images and audio), `model_not_allowed`, `no_route`
 * for a model of another kind, `model_gated`, and the errors of `accepts`.
 */
export function namedModel(request: ResolveRequest, world: RoutingWorld, allowance: Allowance | null): Model {
  const { modelId, kind, org } = request
  const model = world.catalog.models.get(modelId) ?? ownModel(modelId, request, world.catalog)
  if (!model) throw unknownModel(request, world, allowance)
  if (allowance !== null && !allowance.model(model.id)) throw fail('model_not_allowed', { message: `This credential may not use the model "${model.id}".` })
  checkPin(request, allowance)
  request.accepts?.(model)
  if (model.kind !== kind) throw fail('no_route', { message: `"${model.id}" is no ${kind} model. ${whereToSend(model.kind)} No provider was called.` })
  if (model.gated && org.retentionDays === 0) throw fail('model_gated')
  return model
}

const endpoints: Readonly<Record<ServedKind, string>> = {
  chat: '/v1/chat/completions, /v1/messages or /v1/responses',
  embedding: '/v1/embeddings',
  image: '/v1/images/generations',
  transcription: '/v1/audio/transcriptions',
  speech: '/v1/audio/speech',
  rerank: '/v1/rerank',
  moderation: '/v1/moderations',
}

/** Returns a sentence that says where a model of this kind is called. */
const whereToSend = (kind: Model['kind']): string => (kind === 'virtual' ? 'Virtual ids choose chat models.' : `Call it at ${endpoints[kind]}.`)

/** Throws `model_not_allowed` when the request pins a provider that its credential may not use. */
export function checkPin({ fields }: ResolveRequest, allowance: Allowance | null): void {
  if (allowance !== null && fields.provider !== null && !allowance.provider(fields.provider))
    throw fail('model_not_allowed', { message: 'This credential may not use the pinned provider.' })
}

/**
 * Returns the error for an unknown id. An id of the form `provider/model` needs the caller's own key. Without a saved key, the error is `no_route`.
 * With a saved key, the id is unknown. A model of the sandbox that is off, and an id that is nearly one of the catalog, get a message of their own.
 */
function unknownModel({ modelId, kind, org }: ResolveRequest, { catalog }: RoutingWorld, allowance: Allowance | null): GatewayError {
  const parts = splitOwnId(modelId, catalog)
  if (parts === null) return fail(notFound(kind), messageOfUnknown(modelId, catalog, allowance))
  const { provider } = parts
  if (org.savedKeys.has(provider.id)) return fail(notFound(kind), { message: `Your saved ${provider.name} key does not list this model.` })
  return fail('no_route', { message: `This id runs on your own ${provider.name} key, and none is saved. No provider was called.` })
}

const sandboxIsOff =
  'This is a model of the sandbox, and the sandbox is off here: a provider is configured, or SANDBOX=off is set. Use "auto" or an id of GET /v1/models. The operator can set SANDBOX=on.'

function messageOfUnknown(modelId: string, { models }: CatalogSnapshot, allowance: Allowance | null): { message: string } | undefined {
  if (sandboxModelIds.has(modelId)) return { message: sandboxIsOff }
  // A credential learns no id that its rules keep from it.
  const ids = [...models.keys()].filter(id => allowance === null || allowance.model(id))
  const meant = nearest(modelId, ids) ?? nearest(modelId.slice(modelId.lastIndexOf('/') + 1), ids)
  return meant === null ? undefined : { message: `Unknown model id. Did you mean "${meant}"? GET /v1/models lists the ids.` }
}

/** Returns the error for an unknown model: status 400 at endpoints for images and audio, 404 at all others. */
export const notFound = (kind: ServedKind): 'model_not_found' | 'model_not_found_media' => (isMedia(kind) ? 'model_not_found_media' : 'model_not_found')

/** Returns whether the kind has no virtual ids. */
export const isMedia = (kind: ServedKind): boolean => kind !== 'chat' && kind !== 'embedding'

/**
 * Returns the routes of a model, or only the pinned route. An organisation's own server is used only when a pin or a chain names it. Throws
 * `no_route` and `model_not_allowed`.
 */
export function ownCandidates(model: Model, { fields, org }: ResolveRequest, allowance: Allowance | null): readonly Candidate[] {
  const { provider: pinned } = fields
  if (pinned !== null) {
    const served = onProvider(model, pinned, org)
    if (served.length === 0) throw fail('no_route', { message: 'The pinned provider does not serve this model. No provider was called.' })
    return served
  }
  const candidates = candidatesOf(model)
  if (allowance === null) return candidates
  const allowed = candidates.filter(({ route }) => allowance.provider(route.provider.id))
  if (allowed.length === 0) throw fail('model_not_allowed', { message: `This credential may use none of the providers that serve "${model.id}".` })
  return allowed
}

function onProvider(model: Model, providerId: string, org: ResolveRequest['org']): readonly Candidate[] {
  if (!isCustomReference(providerId)) return candidatesOf(model).filter(({ route }) => route.provider.id === providerId)
  const custom = customCandidate(providerId, model, org)
  return custom === null ? [] : [custom]
}

/**
 * Returns the candidates of each step of a chain. Throws `no_route` when no step has a candidate. Throws `model_not_allowed` or `no_route_residency`
 * when rules or constraints removed all candidates.
 */
export function chainCandidates(chain: readonly ChainStep[], request: ResolveRequest, world: RoutingWorld): Steps {
  const steps = chain.map(step => stepCandidates(step, request, world))
  if (steps.some(step => step.length > 0)) return steps
  const withoutRules = { ...request, policies: [] }
  if (request.policies.length > 0 && chain.some(step => stepCandidates(step, withoutRules, world).length > 0))
    throw fail('model_not_allowed', { message: 'This credential may use no step of the chain.' })
  // A preset in a step also obeys the hard constraints, so they may be the reason for the empty result.
  const withoutConstraints = { ...request, fields: { ...request.fields, indiaOnly: false, exclude: [] } }
  if (chain.some(step => stepCandidates(step, withoutConstraints, world).length > 0))
    throw fail('no_route_residency', { message: '"data_policy" and "exclude" leave no step of the chain. No provider was called.' })
  throw fail('no_route', { message: 'No step of the chain resolves to a route. No provider was called.' })
}

/**
 * Returns the candidates of a step. The list is empty for a step that cannot be resolved or is not allowed, and the step is skipped. A saved chain of
 * the step's model is ignored.
 */
function stepCandidates(step: ChainStep, request: ResolveRequest, world: RoutingWorld): readonly Candidate[] {
  const { kind, org, policies } = request
  const allowance = allowanceOf(policies)
  if (allowance !== null && step.provider !== null && !allowance.provider(step.provider)) return []
  const entry = presetOf(step.model)
  if (entry) return kind === 'chat' ? (pick(entry, { ...request, fields: { ...request.fields, provider: step.provider } }, world)?.candidates ?? []) : []
  const model = world.catalog.models.get(step.model) ?? ownModel(step.model, request, world.catalog)
  if (model?.kind !== kind || (model.gated && org.retentionDays === 0) || !isAccepted(model, request)) return []
  if (allowance !== null && !allowance.model(model.id)) return []
  if (step.provider !== null) return onProvider(model, step.provider, org)
  const candidates = candidatesOf(model)
  return allowance === null ? candidates : candidates.filter(({ route }) => allowance.provider(route.provider.id))
}

/** Returns whether the model can do what the request asks. Otherwise its step is skipped. */
function isAccepted(model: Model, { accepts }: ResolveRequest): boolean {
  if (accepts === undefined) return true
  try {
    accepts(model)
    return true
  } catch (error) {
    if (error instanceof GatewayError) return false
    throw error
  }
}
