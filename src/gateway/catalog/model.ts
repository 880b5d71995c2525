import type { ModelTraits } from '../providers/dialect.ts'
import type { ImageStyleId } from '../providers/image-style-ids.ts'
import type { DialectId, Provider, Residency } from '../providers/provider.ts'
import type { Rankings } from './rankings.ts'

export type ModelKind = 'chat' | 'embedding' | 'image' | 'transcription' | 'speech' | 'virtual'

/** Prices of a route in micro-rupees per million units; ₹1/Mtok = 1,000,000n. For audio, `input…` is per million seconds or characters. */
export interface RoutePrice {
  readonly inputUinrPerMtok: bigint
  readonly outputUinrPerMtok: bigint
  /** Price of cached prompt tokens; null = as input. */
  readonly cachedInputUinrPerMtok: bigint | null
  /** Price of prompt tokens that the provider writes to its cache; null = as input. */
  readonly cacheWriteUinrPerMtok: bigint | null
  /** Price of writes that the provider caches for an hour. Omitted: the price of other writes. */
  readonly cacheWriteLongUinrPerMtok?: bigint
  /** Price of prompt tokens that are sound. Omitted: there is no such price. */
  readonly audioInputUinrPerMtok?: bigint
  /** Price of one generated image; 0n for models of other kinds. */
  readonly uinrPerImage: bigint
  /** Price of an image that is larger, better or made with more steps than a plain one. Omitted: there is no such price. */
  readonly uinrPerImageMost?: bigint
  /** Price of a picture in the request, in addition to the delivered ones. Omitted: it is included in their price. */
  readonly uinrPerInputImage?: bigint
  /** The provider chooses the quality of a picture when the request does not, and charges for pictures in the request. */
  readonly picksQuality?: true
  /** The source of the price and its date, for people. They are never shown as a quote. */
  readonly source: string
  readonly asOf: string
}

/** One way to serve a model: a provider, its name for the model, and a price. */
export interface Route {
  readonly modelId: string
  readonly provider: Provider
  /** The id that the provider knows. */
  readonly upstreamModel: string
  /** Wire format of this route. By default it is the provider's. */
  readonly dialect: DialectId
  /** Form of image requests on this route. Omitted: the provider's. */
  readonly imageStyle?: ImageStyleId
  readonly residency: Residency
  readonly price: RoutePrice
  /** True when the platform key never serves this route. */
  readonly byokOnly: boolean
  /** The caller named the provider's own id of the model, so only that caller's key serves it. Left out: the catalog has the row. */
  readonly isOwnId?: true
  readonly contextLength: number | null
  /** Curated quality rank, 1 is best; null = unranked. */
  readonly rank: number | null
  /** Key of the route's circuit and averages where `provider/model` is not unique, because two organisations may have servers with the same slug. */
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
  /** Longest useful edge of an input image, in pixels; null = not known, so images are passed on unchanged. */
  readonly imageMaxEdge: number | null
  /** True for an image model that edits given images. */
  readonly edits: boolean
  readonly gated: boolean
  /** Speech: the voice of calls that name none. Omitted: the provider's own default. */
  readonly defaultVoice?: string
  /** Id in the list for price comparisons; null: no comparison. Omitted: the id with the same name. */
  readonly comparedWith?: string | null
  readonly routes: readonly Route[]
}

/** One validated, immutable version of the catalog. A reload makes a new one. */
export interface CatalogSnapshot {
  readonly providers: ReadonlyMap<string, Provider>
  readonly models: ReadonlyMap<string, Model>
  readonly rankings: Rankings
}

/** Returns the route with the lowest sum of the prices of an input and an output token; undefined when the model has no route. */
export function cheapestRoute({ routes }: Pick<Model, 'routes'>): Route | undefined {
  const [first, ...rest] = routes
  return rest.reduce((best, route) => (best && bothPrices(best) <= bothPrices(route) ? best : route), first)
}

const bothPrices = ({ price }: Route): bigint => price.inputUinrPerMtok + price.outputUinrPerMtok
