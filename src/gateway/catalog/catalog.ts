import { inrFromUinr } from '../../platform/values/money.ts'
import { type Allowance, allowedPart, allowedProviders } from './allowance.ts'
import { type CatalogSnapshot, cheapestRoute, type Model, type Route, type RouteId, stateKeyOf } from './model.ts'

/** The current state of a route, from routing. The two flags are independent of each other and of `byok_only`. */
export interface RouteState {
  /** False while the circuit is open. */
  readonly available: boolean
  /** True while the platform's route is quarantined. */
  readonly maintenance: boolean
}

export interface RouteView extends RouteState {
  readonly provider: string
  /** The concrete model of the route. Only virtual models have it. */
  readonly model?: string
  readonly residency: 'india' | 'global'
  readonly inputINRPerMtok: number
  readonly outputINRPerMtok: number
  readonly byok_only: boolean
  /** True when the gateway serves calls on this route now without a saved key. */
  readonly configured: boolean
  readonly context_length: number | null
}

export interface ModelView {
  readonly id: string
  readonly object: 'model'
  readonly owned_by: string
  readonly kind: Model['kind']
  readonly pricing: Readonly<Record<string, number>>
  readonly residency: 'india' | 'global'
  readonly languages: readonly string[]
  readonly context_length: number | null
  readonly max_output_tokens: number | null
  readonly tools: boolean
  readonly modalities: readonly string[]
  readonly supported_parameters: readonly string[]
  readonly reasoning_efforts?: readonly string[]
  readonly routes: readonly RouteView[]
  readonly openness?: string
  readonly inrPerImage?: number
  readonly dimensions?: number
}

export interface ProviderView {
  readonly id: string
  readonly name: string
  readonly configured: boolean
  readonly residency: 'india' | 'global'
  readonly byok: boolean
  readonly platform_fallback: boolean
  readonly missing?: readonly string[]
  readonly untried?: true
}

const isWell = (): RouteState => ({ available: true, maintenance: false })

/** The catalog in the shape of the public API. */
export class Catalog {
  #snapshot: CatalogSnapshot
  #healthOf: (routeId: RouteId) => RouteState

  /** Every route is shown as available until `showHealth` is called. */
  constructor(snapshot: CatalogSnapshot, healthOf: (routeId: RouteId) => RouteState = isWell) {
    this.#snapshot = snapshot
    this.#healthOf = healthOf
  }

  /** Sets the source of the current state of routes. It is set later, because routing needs the catalog first. */
  showHealth(healthOf: (routeId: RouteId) => RouteState): void {
    this.#healthOf = healthOf
  }

  get snapshot(): CatalogSnapshot {
    return this.#snapshot
  }

  /** Replaces the snapshot after a reload. */
  replace(snapshot: CatalogSnapshot): void {
    this.#snapshot = snapshot
  }

  /**
   * Returns every listed model that has all of these modalities, followed by such models of `own`. With an allowance, only allowed models are
   * returned.
   */
  publicModels(modalities: readonly string[] = [], allowance: Allowance | null = null, own: readonly Model[] = []): readonly ModelView[] {
    return [...this.#snapshot.models.values(), ...own].flatMap(model => {
      const listed = modalities.every(modality => model.modalities.includes(modality)) ? this.#allowed(model, allowance) : null
      return listed ? [this.#view(listed)] : []
    })
  }

  /** Returns one model, or null when the id is unknown or not allowed. */
  publicModel(id: string, allowance: Allowance | null = null, own: readonly Model[] = []): ModelView | null {
    const model = this.#snapshot.models.get(id) ?? own.find(entry => entry.id === id)
    const listed = model ? this.#allowed(model, allowance) : null
    return listed ? this.#view(listed) : null
  }

  /** Returns every provider. With an allowance, only the providers of allowed models are returned. */
  publicProviders(allowance: Allowance | null = null): readonly ProviderView[] {
    const allowed = allowance === null ? null : allowedProviders(this.#snapshot, allowance)
    const onPlatformKey = new Set(
      [...this.#snapshot.models.values()].flatMap(model => model.routes.filter(route => !route.byokOnly).map(route => route.provider.id)),
    )
    const listed = [...this.#snapshot.providers.values()].filter(({ id }) => allowed?.has(id) ?? true)
    return listed.map(provider => ({
      id: provider.id,
      name: provider.name,
      configured: provider.configured,
      residency: shown(provider.residency),
      byok: provider.byok,
      platform_fallback: provider.configured && onPlatformKey.has(provider.id),
      ...(provider.missing === undefined ? {} : { missing: provider.missing }),
      ...(provider.untried === undefined ? {} : { untried: provider.untried }),
    }))
  }

  #allowed(model: Model, allowance: Allowance | null): Model | null {
    return allowance === null ? model : allowedPart(model, allowance)
  }

  #view(model: Model): ModelView {
    const routes = model.routes.map(route => this.#routeView(model, route))
    return {
      id: model.id,
      object: 'model',
      owned_by: model.ownedBy,
      kind: model.kind,
      pricing: pricing(model),
      residency: routes.some(route => route.residency === 'india') ? 'india' : 'global',
      languages: model.languages,
      context_length: model.contextLength,
      max_output_tokens: model.maxOutputTokens,
      tools: model.tools,
      modalities: model.modalities,
      supported_parameters: model.supportedParameters,
      ...(model.efforts.length === 0 ? {} : { reasoning_efforts: model.efforts }),
      ...(model.openness === null ? {} : { openness: model.openness }),
      ...(model.inrPerImage === null ? {} : { inrPerImage: model.inrPerImage }),
      ...(model.dimensions === null ? {} : { dimensions: model.dimensions }),
      routes,
    }
  }

  #routeView(model: Model, route: Route): RouteView {
    const tokens = pricedInTokens(model)
    return {
      provider: route.provider.id,
      ...(route.modelId === model.id ? {} : { model: route.modelId }),
      residency: shown(route.residency),
      inputINRPerMtok: tokens ? inrFromUinr(route.price.inputUinrPerMtok) : 0,
      outputINRPerMtok: tokens ? inrFromUinr(route.price.outputUinrPerMtok) : 0,
      ...this.#healthOf(stateKeyOf(route)),
      byok_only: route.byokOnly,
      // A model outside the catalog needs a key or server of the organisation.
      configured: !this.#snapshot.models.has(model.id) || (route.provider.configured && !route.byokOnly),
      context_length: route.contextLength,
    }
  }
}

/** A route is shown as global unless it is known to be in India. */
const shown = (residency: Route['residency']): 'india' | 'global' => (residency === 'india' ? 'india' : 'global')

const pricedInTokens = (model: Model): boolean => model.kind === 'chat' || model.kind === 'embedding' || model.kind === 'virtual'

/** Returns the prices of the cheapest route. Audio has a price in its own unit. Its two token prices are 0. */
function pricing(model: Model): Record<string, number> {
  const cheapest = cheapestRoute(model)
  if (!cheapest) return { inputINRPerMtok: 0, outputINRPerMtok: 0 }
  const { inputUinrPerMtok, outputUinrPerMtok, cachedInputUinrPerMtok, cacheWriteUinrPerMtok, audioInputUinrPerMtok } = cheapest.price
  if (model.kind === 'transcription') return { inputINRPerMtok: 0, outputINRPerMtok: 0, inrPerMinute: Math.round(inrFromUinr(inputUinrPerMtok) * 60) / 1e6 }
  if (model.kind === 'speech') return { inputINRPerMtok: 0, outputINRPerMtok: 0, inrPerMillionCharacters: inrFromUinr(inputUinrPerMtok) }
  return {
    inputINRPerMtok: inrFromUinr(inputUinrPerMtok),
    outputINRPerMtok: inrFromUinr(outputUinrPerMtok),
    ...(cachedInputUinrPerMtok === null ? {} : { cachedInputINRPerMtok: inrFromUinr(cachedInputUinrPerMtok) }),
    ...(cacheWriteUinrPerMtok === null ? {} : { cacheWriteINRPerMtok: inrFromUinr(cacheWriteUinrPerMtok) }),
    ...(audioInputUinrPerMtok === undefined ? {} : { audioInputINRPerMtok: inrFromUinr(audioInputUinrPerMtok) }),
  }
}
