/** Models and routes that exist for one organisation only: ids of the form `provider/model-id`, and servers of its own. */
import { routeOfCustom } from '../byok/custom-servers/custom-route.ts'
import { type CatalogSnapshot, type Model, type Route, type RoutePrice, routeId } from '../catalog/model.ts'
import type { Provider } from '../providers/provider.ts'
import type { Candidate } from './candidates.ts'
import type { OrgRouting } from './org-routing.ts'
import type { ResolveRequest } from './plan.ts'

/** Ids go into requests, headers and the books: printable, without spaces, and short enough for an index of the database. */
const upstreamModelShape = /^[\x21-\x7e]{1,200}$/

/**
 * `provider/model-id` in its parts; the model's id may have slashes of its own. Null when the part before the first slash names no provider
 * that takes callers' keys, and when the rest can be no id.
 */
export function splitOwnId(modelId: string, catalog: CatalogSnapshot): { readonly provider: Provider; readonly upstreamModel: string } | null {
  const slash = modelId.indexOf('/')
  const provider = slash > 0 ? catalog.providers.get(modelId.slice(0, slash)) : undefined
  const upstreamModel = modelId.slice(slash + 1)
  return provider?.byok && upstreamModelShape.test(upstreamModel) ? { provider, upstreamModel } : null
}

type OwnRequest = Pick<ResolveRequest, 'org' | 'kind'> & { readonly fields: Pick<ResolveRequest['fields'], 'upstreamKey'> }

/**
 * The model behind `provider/model-id`, with its one route on the caller's own key: one that the provider listed for the saved key, or
 * any when a key comes with the request. Also a `claude-*` id that the catalog does not list yet, on the provider of those that it lists:
 * whether there is a credential for it is asked later. Null when it is none of these.
 */
export function ownModel(modelId: string, { org, fields, kind }: OwnRequest, catalog: CatalogSnapshot): Model | null {
  const parts = splitOwnId(modelId, catalog)
  if (parts === null) return kind === 'chat' ? unlistedClaude(modelId, catalog) : null
  const { provider, upstreamModel } = parts
  if (fields.upstreamKey === null && !org.savedKeys.get(provider.id)?.models.includes(upstreamModel)) return null
  const twin = twinOf(provider.id, upstreamModel, catalog)
  const route: Route = {
    modelId,
    provider,
    upstreamModel,
    dialect: twin?.route.dialect ?? provider.dialect,
    ...(twin?.route.imageStyle === undefined ? {} : { imageStyle: twin.route.imageStyle }),
    residency: twin?.route.residency ?? provider.residency,
    price: twin?.route.price ?? unknownPrice,
    byokOnly: true,
    contextLength: twin?.route.contextLength ?? null,
    rank: null,
    // Ids are what callers write, so those that the catalog does not know share one state: it stays bounded.
    stateKey: twin ? routeId(twin.route) : `${provider.id}/*`,
  }
  return { ...(twin?.model ?? unknownModel(kind)), id: modelId, ownedBy: provider.id, routes: [route] }
}

/** Ids of the models that run on callers' own credentials alone, in the provider's own format. */
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

/** The native provider of the catalog's own `claude-*` models. */
function claudeProvider(catalog: CatalogSnapshot): Provider | null {
  const known = claudeProviders.get(catalog)
  if (known !== undefined) return known.provider
  const routes = [...catalog.models.values()].filter(({ id }) => claudeId.test(id)).flatMap(({ routes }) => routes)
  const provider = routes.find(({ byokOnly, dialect, provider: { byok } }) => byokOnly && dialect === 'anthropic' && byok)?.provider ?? null
  claudeProviders.set(catalog, { provider })
  return provider
}

/** Every model that the organisation's saved keys were found to reach, as `provider/model-id`. */
export function discoveredModels(org: OrgRouting, catalog: CatalogSnapshot): readonly Model[] {
  const asking = { org, fields: { upstreamKey: null }, kind: 'chat' } as const
  const ids = [...org.savedKeys].flatMap(([providerId, { models }]) => models.map(model => `${providerId}/${model}`))
  return ids.flatMap(id => (catalog.models.has(id) ? [] : (ownModel(id, asking, catalog) ?? [])))
}

/** The organisation's own server of that reference as a candidate for a model; null when it has none or it serves another model. */
export function customCandidate(reference: string, model: Model, org: OrgRouting): Candidate | null {
  const custom = org.customRoutes.get(reference)
  return custom?.modelId === model.id ? { model, route: routeOfCustom(custom, model) } : null
}

/** Whether a provider id is a reference to a server of an organisation. */
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

/** What is taken for true of a model that the catalog does not describe. */
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

/** By snapshot: routes of the catalog by what their provider calls the model. */
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
