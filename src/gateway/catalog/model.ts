import type { ModelTraits } from '../providers/dialect.ts'
import type { ImageStyleId } from '../providers/image-style-ids.ts'
import type { DialectId, Provider, Residency } from '../providers/provider.ts'
import type { Rankings } from './rankings.ts'

export type ModelKind = 'chat' | 'embedding' | 'image' | 'transcription' | 'speech' | 'virtual'

/** Prices of a route in micro-rupees per million units; ₹1/Mtok = 1,000,000n. Audio: `input…` per million seconds or characters. */
export interface RoutePrice {
  readonly inputUinrPerMtok: bigint
  readonly outputUinrPerMtok: bigint
  /** Cached prompt tokens; null = as input. */
  readonly cachedInputUinrPerMtok: bigint | null
  /** Prompt tokens that the provider writes to its cache; null = as input. */
  readonly cacheWriteUinrPerMtok: bigint | null
  /** The same for what it keeps for an hour; left out: as the others. */
  readonly cacheWriteLongUinrPerMtok?: bigint
  /** Prompt tokens that are sound; left out: there is no such price. */
  readonly audioInputUinrPerMtok?: bigint
  /** One generated image; 0n for models of other kinds. */
  readonly uinrPerImage: bigint
  /** The price of an image that is larger, better or made with more steps than a plain one; left out: there is no such price. */
  readonly uinrPerImageMost?: bigint
  /** A picture that comes with a request, beside those that are delivered; left out: it is in their price. */
  readonly uinrPerInputImage?: bigint
  /** The provider chooses how good a picture becomes where nobody says it, and charges for given ones. */
  readonly picksQuality?: true
  /** The source of the price and its date, for people: never shown as a quote. */
  readonly source: string
  readonly asOf: string
}

/** A provider that serves a model. */
export interface Route {
  readonly modelId: string
  readonly provider: Provider
  /** The id that the provider knows. */
  readonly upstreamModel: string
  /** Wire format of this route: the provider's, unless the row says otherwise. */
  readonly dialect: DialectId
  /** How images are asked for on this route; left out: as the provider says. */
  readonly imageStyle?: ImageStyleId
  readonly residency: Residency
  readonly price: RoutePrice
  /** Never served on the platform's key. */
  readonly byokOnly: boolean
  readonly contextLength: number | null
  /** Curated quality rank, 1 is best; null = unranked. */
  readonly rank: number | null
  /** Names the route's circuit and averages where `provider/model` is not unique: two organisations may have servers of one slug. */
  readonly stateKey?: string
}

/** `provider/model` names a route to callers: `exclude`, lists, refusals. */
export type RouteId = string
export const routeId = (route: Route): RouteId => `${route.provider.id}/${route.modelId}`
/** Under which a route's circuit, averages and maintenance are kept. Never shown to callers. */
export const stateKeyOf = (route: Route): RouteId => route.stateKey ?? routeId(route)

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
  /** Longest edge of an input image that the model makes use of, in pixels; null = not known, so images go on as they are. */
  readonly imageMaxEdge: number | null
  /** True: an image model that edits given images. */
  readonly edits: boolean
  readonly gated: boolean
  /** Speech: the voice of calls that name none; left out: the provider's own default. */
  readonly defaultVoice?: string
  /** Id in the list for price comparisons; null: no comparison; left out: the id of the same name. */
  readonly comparedWith?: string | null
  readonly routes: readonly Route[]
}

/** One validated, immutable view of the catalog. A reload makes a new one. */
export interface CatalogSnapshot {
  readonly providers: ReadonlyMap<string, Provider>
  readonly models: ReadonlyMap<string, Model>
  readonly rankings: Rankings
}

/** The route with the lowest price of one input and one output token together; undefined when the model has none. */
export function cheapestRoute({ routes }: Pick<Model, 'routes'>): Route | undefined {
  const [first, ...rest] = routes
  return rest.reduce((best, route) => (best && bothPrices(best) <= bothPrices(route) ? best : route), first)
}

const bothPrices = ({ price }: Route): bigint => price.inputUinrPerMtok + price.outputUinrPerMtok
