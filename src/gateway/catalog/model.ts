import type { ModelTraits } from '../providers/dialect.ts'
import type { ImageStyleId } from '../providers/image-style-ids.ts'
import type { DialectId, Provider, Residency } from '../providers/provider.ts'
import type { Rankings } from './rankings.ts'

export type ModelKind = 'chat' | 'embedding' | 'image' | 'transcription' | 'speech' | 'rerank' | 'moderation' | 'virtual'

/** Prices of a route in micro-rupees per million units. ₹1 per million tokens is 1,000,000n. For audio, `input…` is per million seconds or characters. */
export interface RoutePrice {
  readonly inputUinrPerMtok: bigint
  readonly outputUinrPerMtok: bigint
  /** Price of cached prompt tokens. Null means the input price. */
  readonly cachedInputUinrPerMtok: bigint | null
  /** Price of prompt tokens that the provider writes to its cache. Null means the input price. */
  readonly cacheWriteUinrPerMtok: bigint | null
  /** Price of cache writes that the provider keeps for an hour. When it is left out, the price of other cache writes applies. */
  readonly cacheWriteLongUinrPerMtok?: bigint
  /** Price of prompt tokens that represent audio. When it is left out, the input price applies. */
  readonly audioInputUinrPerMtok?: bigint
  /** Price of one generated image. 0n for other models. */
  readonly uinrPerImage: bigint
  /** Price of an image that is larger or better, or takes more steps, than a plain one. When it is left out, there is no such price. */
  readonly uinrPerImageMost?: bigint
  /** Price of a picture in the request, in addition to the delivered pictures. When it is left out, their price includes it. */
  readonly uinrPerInputImage?: bigint
  /** Price of a million searches: rankings of at most 100 documents. When it is left out, rankings cost their tokens. */
  readonly uinrPerMillionSearches?: bigint
  /** True when the provider chooses the quality of a picture that the request leaves open. Such a provider also charges for pictures in the request. */
  readonly picksQuality?: true
  /** Prices of the tokens of a batch. When one is left out, it is half of the price of a call. */
  readonly batchInputUinrPerMtok?: bigint
  readonly batchOutputUinrPerMtok?: bigint
  /** Prices of calls with long prompts, by rising length. Each tier replaces all prices above. When it is left out, the length of a prompt changes no price. */
  readonly tiers?: readonly PriceTier[]
  /** The source of the price and its date, for people to read. They are not a quote. */
  readonly source: string
  readonly asOf: string
}

/** The price of every token of a call whose prompt is longer than `abovePromptTokens`. */
export interface PriceTier {
  readonly abovePromptTokens: number
  readonly price: Omit<RoutePrice, 'tiers'>
}

/** One way to serve a model: a provider, its name for the model, and a price. */
export interface Route {
  readonly modelId: string
  readonly provider: Provider
  /** The id that the provider knows. */
  readonly upstreamModel: string
  /** Wire format of this route. The default is the provider's format. */
  readonly dialect: DialectId
  /** Form of image requests on this route. When it is left out, the provider's form applies. */
  readonly imageStyle?: ImageStyleId
  readonly residency: Residency
  readonly price: RoutePrice
  /** True when the platform key never serves this route. */
  readonly byokOnly: boolean
  /** True when the caller named the model by the provider's own id. Such a route needs the caller's own key. Left out for routes of the catalog. */
  readonly isOwnId?: true
  readonly contextLength: number | null
  /** How long the provider keeps the beginning of a prompt in its cache, in seconds. When it is left out, five minutes. */
  readonly cacheTtlSeconds?: number
  /** Curated quality rank. 1 is best. Null means that the route is not ranked. */
  readonly rank: number | null
  /**
   * Key of the route's circuit and averages. It is set where `provider/model` is not unique, because two organisations may have servers with the same
   * slug.
   */
  readonly stateKey?: string
}

/** `provider/model` is the name of a route for callers: in `exclude`, lists and refusals. */
export type RouteId = string
export const routeId = (route: Route): RouteId => `${route.provider.id}/${route.modelId}`
/** Returns the key of a route's circuit, averages and maintenance. Callers never see it. */
export function stateKeyOf(route: Route): RouteId {
  const known = stateKeys.get(route)
  if (known !== undefined) return known
  const made = route.stateKey ?? routeId(route)
  stateKeys.set(route, made)
  return made
}

/** Every call asks for the key of its route several times, so it is made once. */
const stateKeys = new WeakMap<Route, RouteId>()

export interface Model extends ModelTraits {
  readonly id: string
  readonly kind: ModelKind
  readonly ownedBy: string
  readonly languages: readonly string[]
  readonly contextLength: number | null
  readonly tools: boolean
  /** text, image, audio, embedding, reasoning … */
  readonly modalities: readonly string[]
  readonly openness: 'open' | 'permissive' | 'closed' | null
  readonly inrPerImage: number | null
  readonly dimensions: number | null
  /** Largest useful edge of an input image, in pixels. Null means that it is not known. Images are then passed on unchanged. */
  readonly imageMaxEdge: number | null
  /** True for an image model that edits given images. */
  readonly edits: boolean
  readonly gated: boolean
  /** For speech: the voice of calls that name none. When it is left out, the provider's default applies. */
  readonly defaultVoice?: string
  /** Id in the price list of the other router. Null means that there is no comparison. When it is left out, the id with the same name is used. */
  readonly comparedWith?: string | null
  readonly routes: readonly Route[]
}

/** One validated, immutable version of the catalog. A reload makes a new one. */
export interface CatalogSnapshot {
  readonly providers: ReadonlyMap<string, Provider>
  readonly models: ReadonlyMap<string, Model>
  readonly rankings: Rankings
}

/** Returns the route with the lowest sum of input price and output price. Undefined when the model has no route. */
export function cheapestRoute({ routes }: Pick<Model, 'routes'>): Route | undefined {
  const [first, ...rest] = routes
  return rest.reduce((best, route) => (best && bothPrices(best) <= bothPrices(route) ? best : route), first)
}

const bothPrices = ({ price }: Route): bigint => comparablePrice(price)

/** The tokens for which one search counts in comparisons of prices: 100 documents of 500 tokens, the most that one search covers. */
const tokensPerSearch = 50_000n

/** Returns one figure for comparisons of routes: the prices of input and output together. A price of searches counts as a price of the tokens that they cover. */
export const comparablePrice = ({ inputUinrPerMtok, outputUinrPerMtok, uinrPerMillionSearches = 0n }: RoutePrice): bigint =>
  inputUinrPerMtok + outputUinrPerMtok + uinrPerMillionSearches / tokensPerSearch
