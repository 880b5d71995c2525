import { type Config, ConfigError, keyVariableOf, providerVariableOf } from '../../../platform/config.ts'
import { uinrFromInr } from '../../../platform/values/money.ts'
import { AddressError, addressTemplate, filledAddress, missingNames, placeNames } from '../../cloud/address-template.ts'
import { routeResidency } from '../../providers/clouds/cloud-residency.ts'
import type { AddressTemplate, Place, PlaceName, Provider } from '../../providers/provider.ts'
import type { Model, ModelKind, Route, RoutePrice } from '../model.ts'
import type { ModelEntry, ProviderEntry, RouteEntry } from './file-schema.ts'

/** The text and day of each short name of a price source. */
export type PriceSources = Readonly<Record<string, { readonly text: string; readonly as_of: string }>>

/** A provider from outside the data files (sandbox, local server) with its models. */
export interface CatalogPart {
  readonly provider: Provider
  readonly models: readonly ModelEntry[]
}

/**
 * Combines a provider entry with its environment variables. A provider without a base URL is listed but never configured. A provider that is called
 * without a key accepts no keys of callers, because the gateway would not send them (decision 0485).
 */
export function toProvider(entry: ProviderEntry, config: Config): Provider {
  const environment = config.providerEnv(entry.id)
  const platformKey = environment.apiKey ?? (entry.api_key_env === undefined ? null : config.namedSecret(entry.api_key_env))
  const placed = placedAddress(entry, config, environment.baseUrl)
  const { baseUrl } = placed
  const auth = entry.key_optional && platformKey === null ? 'none' : (entry.auth ?? 'bearer')
  const { usesIdentity, missing } = identityOf(entry, config, { ...placed, hasCredential: auth === 'none' || (auth !== 'identity' && platformKey !== null) })
  return {
    id: entry.id,
    name: entry.name ?? entry.id,
    dialect: entry.dialect ?? (entry.cloud === undefined ? 'openai' : 'anthropic'),
    ...(entry.cloud === undefined ? {} : { cloud: entry.cloud }),
    baseUrl,
    auth,
    residency: entry.residency ?? 'unknown',
    byok: (entry.byok ?? true) && (baseUrl !== '' || placed.address !== undefined) && auth !== 'none',
    keyShape: entry.key_shape ?? null,
    ...(entry.key_sign === undefined ? {} : { keySign: entry.key_sign }),
    quirks: entry.quirks ?? [],
    ...(entry.forwards === undefined ? {} : { forwards: entry.forwards }),
    ...(entry.fields === undefined ? {} : { fields: new Set(entry.fields) }),
    ...(entry.files === undefined ? {} : { files: entry.files }),
    ...(entry.batches === true ? { batches: true } : {}),
    ...(entry.image_style === undefined ? {} : { imageStyle: entry.image_style }),
    ...(entry.rerank_style === undefined ? {} : { rerankStyle: entry.rerank_style }),
    ...(entry.rerank_path === undefined ? {} : { rerankPath: entry.rerank_path }),
    ...(entry.models_path === undefined ? {} : { modelsPath: entry.models_path }),
    ...(entry.key_check_path === undefined ? {} : { keyCheckPath: entry.key_check_path }),
    ...cacheTtlOf(entry.cache_ttl_seconds),
    ...(entry.api_key_env === undefined ? {} : { keyVariable: entry.api_key_env }),
    ...(placed.address === undefined ? {} : { address: placed.address }),
    ...(Object.keys(placed.place).length === 0 ? {} : { place: placed.place }),
    ...(entry.identity === undefined ? {} : { identity: entry.identity }),
    ...(usesIdentity ? { usesIdentity } : {}),
    ...(missing.length === 0 ? {} : { missing }),
    ...(entry.untried === undefined ? {} : { untried: entry.untried }),
    platformKey: auth === 'identity' ? null : platformKey,
    configured: baseUrl !== '' && missing.length === 0 && (auth === 'none' || usesIdentity || (auth !== 'identity' && platformKey !== null)),
  }
}

interface PlacedAddress {
  readonly baseUrl: string
  readonly address?: AddressTemplate
  readonly place: Place
  /** The placeholders without a value. */
  readonly lacking: readonly PlaceName[]
}

/** Returns the address of an entry with the values of the operator. Without all values the address is empty. Throws ConfigError for a wrong value. */
function placedAddress(entry: ProviderEntry, config: Config, fromEnvironment: string | null): PlacedAddress {
  const text = (entry.base_url ?? '').replace(/\/+$/, '')
  const cases = (entry.base_url_cases ?? []).map(({ when, base_url: each }) => ({ when: definedValues(when), text: each.replace(/\/+$/, '') }))
  const values = placeNames.flatMap(name => {
    const value = config.providerValue(entry.id, name) ?? entry.values?.[name]
    return value === undefined ? [] : [[name, value] as const]
  })
  const place: Place = Object.fromEntries(values)
  const isTemplate = text.includes('{') || cases.length > 0
  const address = isTemplate ? { address: addressTemplate(text, cases) } : {}
  if (fromEnvironment !== null) return { baseUrl: fromEnvironment, ...address, place, lacking: [] }
  if (address.address === undefined) return { baseUrl: text, place, lacking: [] }
  const lacking = missingNames(address.address, place)
  if (lacking.length > 0) return { baseUrl: '', ...address, place, lacking }
  try {
    return { baseUrl: filledAddress(address.address, place), ...address, place, lacking }
  } catch (cause) {
    if (!(cause instanceof AddressError)) throw cause
    throw new ConfigError(
      `The values of the provider ${entry.id} give no address: ${cause.message}. Correct ${variablesOfPlace(entry.id, address.address.names)}.`,
      { cause },
    )
  }
}

const variablesOfPlace = (id: string, names: readonly PlaceName[]): string => names.map(name => providerVariableOf(id, name)).join(', ')

const definedValues = (place: Readonly<Partial<Record<PlaceName, string | undefined>>>): Place =>
  Object.fromEntries(Object.entries(place).filter(([, value]) => value !== undefined))

/** Returns whether the identity of this process serves the provider, and which settings are missing before it is configured. */
function identityOf(
  entry: ProviderEntry,
  config: Config,
  { place, lacking, hasCredential, address }: PlacedAddress & { readonly hasCredential: boolean },
): { readonly usesIdentity?: true; readonly missing: readonly string[] } {
  if (entry.identity === undefined && address === undefined) return { missing: [] }
  const given = config.providerValue(entry.id, 'identity')
  if (given !== null && given !== 'on' && given !== 'off')
    throw new ConfigError(`${providerVariableOf(entry.id, 'identity')} must be on or off, not "${given}".`)
  const usesIdentity = entry.identity !== undefined && !hasCredential && (given === null ? entry.use_identity === true : given === 'on')
  const region = usesIdentity && entry.identity?.kind === 'aws' && place.region === undefined && !lacking.includes('region') ? (['region'] as const) : []
  const missing = [...lacking, ...region].map(name => providerVariableOf(entry.id, name))
  if (usesIdentity || hasCredential) return { ...(usesIdentity ? { usesIdentity } : {}), missing }
  return { missing: [...missing, entry.auth === 'identity' ? providerVariableOf(entry.id, 'identity') : (entry.api_key_env ?? keyVariableOf(entry.id))] }
}

/**
 * Builds the model of an entry. A model without a route is never listed, so this returns null when none of the routes names a provider of the
 * catalog.
 */
export function toModel(entry: ModelEntry, providers: ReadonlyMap<string, Provider>, sources: PriceSources): Model | null {
  const kind = entry.kind ?? 'chat'
  const routes = (entry.routes ?? []).flatMap(route => {
    const provider = providers.get(route.provider)
    return provider ? [toRoute(entry, route, provider, sources)] : []
  })
  if (routes.length === 0) return null
  const reasoning = entry.reasoning ?? false
  return {
    id: entry.id,
    kind,
    ownedBy: entry.owned_by ?? 'operator',
    languages: entry.languages ?? ['en'],
    contextLength: entry.context_length ?? null,
    maxOutputTokens: entry.max_output_tokens ?? null,
    tools: entry.tools ?? false,
    modalities: withReasoning(entry.modalities ?? defaultModalities[kind], reasoning),
    supportedParameters: entry.supported_parameters ?? [],
    reasoning,
    openness: entry.openness ?? null,
    inrPerImage: entry.inr_per_image ?? null,
    dimensions: entry.dimensions ?? null,
    efforts: entry.efforts ?? [],
    alwaysThinks: entry.thinking === 'always',
    imageMaxEdge: entry.image_max_edge ?? null,
    edits: entry.edits ?? false,
    gated: entry.gated ?? false,
    ...(entry.default_voice === undefined ? {} : { defaultVoice: entry.default_voice }),
    ...(entry.compare_with === undefined ? {} : { comparedWith: entry.compare_with }),
    routes,
  }
}

const defaultModalities: Readonly<Record<Exclude<ModelKind, 'virtual'>, readonly string[]>> = {
  chat: ['text'],
  embedding: ['embedding'],
  image: ['image'],
  transcription: ['audio'],
  speech: ['audio'],
  rerank: ['text'],
  moderation: ['text'],
}

const withReasoning = (modalities: readonly string[], reasoning: boolean): readonly string[] =>
  reasoning && !modalities.includes('reasoning') ? [...modalities, 'reasoning'] : modalities

function toRoute(model: ModelEntry, entry: RouteEntry, provider: Provider, sources: PriceSources): Route {
  return {
    modelId: model.id,
    provider,
    upstreamModel: entry.upstream_model ?? model.id,
    dialect: entry.dialect ?? provider.dialect,
    ...(entry.image_style === undefined ? {} : { imageStyle: entry.image_style }),
    residency: routeResidency(entry.residency ?? provider.residency, provider, entry.upstream_model ?? model.id),
    price: toPrice(model, entry, provider, sources),
    byokOnly: entry.byok_only ?? false,
    contextLength: entry.context_length ?? model.context_length ?? null,
    rank: entry.rank ?? null,
    ...cacheTtlOf(entry.cache_ttl_seconds ?? provider.cacheTtlSeconds),
  }
}

const cacheTtlOf = (seconds: number | undefined): Pick<Provider & Route, 'cacheTtlSeconds'> => (seconds === undefined ? {} : { cacheTtlSeconds: seconds })

/**
 * Returns whether the provider chooses the quality of a picture when the request does not. This is true for routes of OpenAI's image models. For the
 * operator's own server it is false, because higher quality costs nothing there.
 */
const picksQuality = ({ id }: ModelEntry, { image_style: style, upstream_model: upstream = id }: RouteEntry, { imageStyle, forwards }: Provider): boolean =>
  forwards !== 'all' && ((style ?? imageStyle) === 'openai-gpt-image' || /gpt-image/i.test(upstream))

/**
 * Returns the price of cache writes that are kept for an hour. Only Anthropic offers them, at twice the input price. Null means the price of other
 * cache writes.
 */
function longWritePrice({ input_inr_per_mtok: input = 0, cache_write_inr_per_mtok: write, cache_write_hour_inr_per_mtok: long }: TokenPrices): number | null {
  return long ?? (write === undefined ? null : Math.max(write, 2 * input))
}

type TokenPrices = Pick<
  RouteEntry,
  | 'input_inr_per_mtok'
  | 'output_inr_per_mtok'
  | 'cached_input_inr_per_mtok'
  | 'cache_write_inr_per_mtok'
  | 'cache_write_hour_inr_per_mtok'
  | 'audio_input_inr_per_mtok'
  | 'batch_input_inr_per_mtok'
  | 'batch_output_inr_per_mtok'
>

/** Returns the prices of tokens other than input. */
function tokenPrices(entry: TokenPrices) {
  const long = longWritePrice(entry)
  return {
    outputUinrPerMtok: uinrFromInr(entry.output_inr_per_mtok ?? 0),
    cachedInputUinrPerMtok: entry.cached_input_inr_per_mtok === undefined ? null : uinrFromInr(entry.cached_input_inr_per_mtok),
    cacheWriteUinrPerMtok: entry.cache_write_inr_per_mtok === undefined ? null : uinrFromInr(entry.cache_write_inr_per_mtok),
    ...(long === null ? {} : { cacheWriteLongUinrPerMtok: uinrFromInr(long) }),
    ...(entry.audio_input_inr_per_mtok === undefined ? {} : { audioInputUinrPerMtok: uinrFromInr(entry.audio_input_inr_per_mtok) }),
    ...(entry.batch_input_inr_per_mtok === undefined ? {} : { batchInputUinrPerMtok: uinrFromInr(entry.batch_input_inr_per_mtok) }),
    ...(entry.batch_output_inr_per_mtok === undefined ? {} : { batchOutputUinrPerMtok: uinrFromInr(entry.batch_output_inr_per_mtok) }),
  }
}

/** Returns the price with its tiers. Everything that is not a price of tokens is the same in each. */
function withTiers(price: RoutePrice, { tiers = [] }: RouteEntry): RoutePrice {
  if (tiers.length === 0) return price
  const {
    cacheWriteLongUinrPerMtok: _long,
    audioInputUinrPerMtok: _audio,
    batchInputUinrPerMtok: _batchInput,
    batchOutputUinrPerMtok: _batchOutput,
    ...shared
  } = price
  return {
    ...price,
    tiers: tiers.map(tier => ({
      abovePromptTokens: tier.above_prompt_tokens,
      price: { ...shared, inputUinrPerMtok: uinrFromInr(tier.input_inr_per_mtok), ...tokenPrices(tier) },
    })),
  }
}

/** Returns the prices of a route. Prices of audio are per million units too: seconds for transcription, characters for speech. */
function toPrice(model: ModelEntry, entry: RouteEntry, provider: Provider, sources: PriceSources): RoutePrice {
  const source = entry.source === undefined ? undefined : sources[entry.source]
  const perSecond = entry.inr_per_minute === undefined ? undefined : (uinrFromInr(entry.inr_per_minute) * 1_000_000n) / 60n
  const perMillion = entry.input_inr_per_mtok ?? entry.inr_per_million_characters ?? 0
  const price: RoutePrice = {
    inputUinrPerMtok: perSecond ?? uinrFromInr(perMillion),
    ...tokenPrices(entry),
    uinrPerImage: model.kind === 'image' ? uinrFromInr(entry.inr_per_image ?? model.inr_per_image ?? 0) : 0n,
    ...(entry.inr_per_image_most === undefined ? {} : { uinrPerImageMost: uinrFromInr(entry.inr_per_image_most) }),
    ...(entry.inr_per_thousand_searches === undefined ? {} : { uinrPerMillionSearches: uinrFromInr(entry.inr_per_thousand_searches) * 1000n }),
    ...(entry.inr_per_input_image === undefined ? {} : { uinrPerInputImage: uinrFromInr(entry.inr_per_input_image) }),
    ...(model.kind === 'image' && picksQuality(model, entry, provider) ? { picksQuality: true } : {}),
    source: source?.text ?? entry.source ?? 'operator file',
    asOf: entry.as_of ?? source?.as_of ?? '',
  }
  return withTiers(price, entry)
}
