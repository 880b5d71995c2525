/** Models and routes that exist for one organisation only: models with ids of the form `provider/model-id`, and the organisation's own servers. */
import { routeOfCustom } from '../byok/custom-servers/custom-route.ts'
import { type CatalogSnapshot, type Model, type Route, type RoutePrice, routeId } from '../catalog/model.ts'
import { routeResidency } from '../providers/clouds/cloud-residency.ts'
import type { Provider } from '../providers/provider.ts'
import type { Candidate } from './candidates.ts'
import type { OrgRouting } from './org-routing.ts'
import type { ResolveRequest } from './plan.ts'

/**
 * The form of model ids. Requests and headers contain model ids, and usage is stored with them. An id must be printable, without spaces, and short
 * enough for a database index.
 */
const upstreamModelShape = /^[\x21-\x7e]{1,200}$/

/**
 * Splits `provider/model-id`. The model id may contain slashes. Returns null unless the part before the first slash is a provider that accepts
 * callers' keys, and the rest is a valid model id.
 */
export function splitOwnId(modelId: string, catalog: CatalogSnapshot): { readonly provider: Provider; readonly upstreamModel: string } | null {
  const slash = modelId.indexOf('/')
  const provider = slash > 0 ? catalog.providers.get(modelId.slice(0, slash)) : undefined
  const upstreamModel = modelId.slice(slash + 1)
  return provider?.byok && upstreamModelShape.test(upstreamModel) ? { provider, upstreamModel } : null
}

type OwnParts = NonNullable<ReturnType<typeof splitOwnId>>
type OwnRequest = Pick<ResolveRequest, 'org' | 'kind'> & { readonly fields: Pick<ResolveRequest['fields'], 'upstreamKey'> }

/**
 * Returns the model of `provider/model-id`, with one route on the caller's own key. With a saved key, the provider must have listed the model for
 * that key. With a key in the request, any model is accepted. A `claude-*` id that the catalog does not contain yet is accepted too, on the provider
 * of the catalog's `claude-*` models. Whether there is a credential is checked later. Returns null for every other id.
 */
export function ownModel(modelId: string, { org, fields, kind }: OwnRequest, catalog: CatalogSnapshot): Model | null {
  const parts = splitOwnId(modelId, catalog)
  if (parts === null) return kind === 'chat' ? unlistedClaude(modelId, catalog) : null
  if (fields.upstreamKey === null && !org.savedKeys.get(parts.provider.id)?.models.includes(parts.upstreamModel)) return null
  return ofOwnKey(modelId, parts, kind, catalog)
}

/** Returns the model of `provider/model-id` for a key that serves it. */
function ofOwnKey(modelId: string, { provider, upstreamModel }: OwnParts, kind: OwnRequest['kind'], catalog: CatalogSnapshot): Model {
  const twin = twinOf(provider.id, upstreamModel, catalog)
  const route: Route = {
    modelId,
    provider,
    upstreamModel,
    dialect: twin?.route.dialect ?? provider.dialect,
    ...(twin?.route.imageStyle === undefined ? {} : { imageStyle: twin.route.imageStyle }),
    residency: twin?.route.residency ?? routeResidency(provider.residency, provider, upstreamModel),
    price: twin?.route.price ?? unknownPrice,
    byokOnly: true,
    isOwnId: true,
    contextLength: twin?.route.contextLength ?? null,
    rank: null,
    // Callers choose these ids freely. All ids that the catalog does not contain share one state, so the number of states stays bounded.
    stateKey: twin ? routeId(twin.route) : `${provider.id}/*`,
  }
  return { ...(twin?.model ?? unknownModel(kind)), id: modelId, ownedBy: provider.id, routes: [route] }
}

/** Ids of models that are called only with the caller's own credential, in the provider's own format. */
const claudeId = /^claude-[\x21-\x7e]{1,120}$/

function unlistedClaude(modelId: string, catalog: CatalogSnapshot): Model | null {
  if (!claudeId.test(modelId)) return null
  const provider = claudeProvider(catalog)
  if (provider === null) return null
  const route: Route = {
    modelId,
    provider,
    upstreamModel: modelId,
    dialect: 'anthropic',
    residency: provider.residency,
    price: unknownPrice,
    byokOnly: true,
    contextLength: null,
    rank: null,
    stateKey: `${provider.id}/*`,
  }
  return { ...unknownModel('chat'), modalities: ['text', 'image'], id: modelId, ownedBy: provider.id, routes: [route] }
}

const claudeProviders = new WeakMap<CatalogSnapshot, { readonly provider: Provider | null }>()

/** Returns the native provider of the catalog's `claude-*` models. Returns null when there is none. */
function claudeProvider(catalog: CatalogSnapshot): Provider | null {
  const known = claudeProviders.get(catalog)
  if (known !== undefined) return known.provider
  const routes = [...catalog.models.values()].filter(({ id }) => claudeId.test(id)).flatMap(({ routes }) => routes)
  const provider =
    routes.find(({ byokOnly, dialect, provider: { byok, cloud } }) => byokOnly && dialect === 'anthropic' && byok && cloud === undefined)?.provider ?? null
  claudeProviders.set(catalog, { provider })
  return provider
}

/** Returns every model that the providers' lists show for the organisation's saved keys, as `provider/model-id`. The time is linear in their number. */
export function discoveredModels(org: OrgRouting, catalog: CatalogSnapshot): readonly Model[] {
  const ids = [...org.savedKeys].flatMap(([providerId, { models }]) => models.map(model => `${providerId}/${model}`))
  return ids.flatMap(id => {
    const parts = catalog.models.has(id) ? null : splitOwnId(id, catalog)
    return parts === null ? [] : [ofOwnKey(id, parts, 'chat', catalog)]
  })
}

/**
 * Returns the organisation's own server with this reference as a candidate for the model. Returns null when there is no such server, or when it
 * serves another model.
 */
export function customCandidate(reference: string, model: Model, org: OrgRouting): Candidate | null {
  const custom = org.customRoutes.get(reference)
  return custom?.modelId === model.id ? { model, route: routeOfCustom(custom, model) } : null
}

/** Returns whether a provider id is a reference to an organisation's own server. */
export const isCustomReference = (providerId: string): boolean => providerId.startsWith('byoe:')

const unknownPrice: RoutePrice = {
  inputUinrPerMtok: 0n,
  outputUinrPerMtok: 0n,
  cachedInputUinrPerMtok: null,
  cacheWriteUinrPerMtok: null,
  uinrPerImage: 0n,
  source: 'not known: the provider bills the organisation',
  asOf: '',
}

/** The assumed properties of a model that the catalog does not describe. */
const unknownModel = (kind: ResolveRequest['kind']): Omit<Model, 'id' | 'ownedBy' | 'routes'> => ({
  kind,
  languages: [],
  contextLength: null,
  maxOutputTokens: null,
  tools: true,
  modalities: ['text'],
  supportedParameters: [],
  reasoning: false,
  openness: null,
  inrPerImage: null,
  dimensions: null,
  efforts: [],
  alwaysThinks: false,
  imageMaxEdge: null,
  edits: false,
  gated: false,
})

/** The catalog's routes by provider and by the provider's name for the model, for each snapshot. */
const twins = new WeakMap<CatalogSnapshot, ReadonlyMap<string, Candidate>>()

function twinOf(providerId: string, upstreamModel: string, catalog: CatalogSnapshot): Candidate | undefined {
  let index = twins.get(catalog)
  if (index === undefined) {
    const concrete = [...catalog.models.values()].filter(model => model.kind !== 'virtual')
    index = new Map(concrete.flatMap(model => model.routes.map(route => [`${route.provider.id}/${route.upstreamModel}`, { model, route }] as const)))
    twins.set(catalog, index)
  }
  return index.get(`${providerId}/${upstreamModel}`)
}
