/** Compares the catalog's prices with those of another router. */
import type { Clock } from '../../../platform/clock.ts'
import { fail } from '../../../platform/errors.ts'
import { Snapshot } from '../../../platform/loop/snapshot.ts'
import type { Log } from '../../../platform/observe/log.ts'
import { type PublicPage, publicPage } from '../../../platform/public-page.ts'
import { inrFromUinr } from '../../../platform/values/money.ts'
import type { Catalog } from '../catalog.ts'
import { cheapestRoute, type Model } from '../model.ts'
import { type Decimal, decimalOf, roundedDivision, uinrPerMtokOf } from './price-decimal.ts'
import type { PriceFacts, PriceFeeds } from './price-feeds.ts'
import { indexPrices, matchOf, type PriceIndex } from './price-match.ts'

/**
 * A model of the catalog on its cheapest route, and the same model at the other router. Prices are ₹ per million tokens. The other router's prices
 * have 4 decimals.
 */
export interface ComparedModel {
  readonly model: string
  readonly provider: string
  readonly inputINRPerMtok: number
  readonly outputINRPerMtok: number
  readonly compared_with: { readonly id: string; readonly inputINRPerMtok: number; readonly outputINRPerMtok: number }
  /** Difference to the other router's price. Below 0, the catalog is cheaper. Null when the other router's price is zero. */
  readonly difference_percent: { readonly input: number | null; readonly output: number | null }
}

export interface Comparison {
  readonly currency: 'INR'
  /** Rupees for one US dollar. */
  readonly usd_inr: number | null
  /** Host of the price list. Null when the comparison is off. */
  readonly source: string | null
  readonly fetched_at: string | null
  readonly age_hours: number | null
  /** True when the list or the rate is too old, or was never fetched. */
  readonly stale: boolean
  readonly models: readonly ComparedModel[]
}

export interface PriceComparisonOptions {
  readonly clock: Clock
  readonly log: Log
  readonly catalog: Catalog
  readonly feeds: PriceFeeds
  readonly everyMs: number
}

/** The page is built again from the database when it is older than this. */
const maxAgeMs = 60_000
const pageSeconds = 300
const hourMs = 3600_000
/** The data is shown as stale when it is older than this multiple of `everyMs`. A fresh fetch happens at most once in `everyMs`. */
const lateness = 1.5

/** The comparison of all models. It is built in the background. */
export class PriceComparison {
  readonly #options: PriceComparisonOptions
  readonly #made: Snapshot<{ readonly comparison: Comparison; readonly page: PublicPage }>

  constructor(options: PriceComparisonOptions) {
    this.#options = options
    const { clock, log, feeds } = options
    const withPage = (comparison: Comparison) => ({ comparison, page: publicPage(comparison, pageSeconds) })
    const empty = withPage(this.#compare({ prices: null, rate: null }))
    this.#made = new Snapshot({ name: 'catalog.prices', clock, log, maxAgeMs, empty, load: async () => withPage(this.#compare(await feeds.forReader())) })
  }

  /** Returns all models that both lists contain, or only the named model. The list may be empty. Throws `model_not_found`. */
  async page(modelId: string | undefined): Promise<PublicPage> {
    if (modelId !== undefined && !this.#options.catalog.snapshot.models.has(modelId)) throw fail('model_not_found')
    const { comparison, page } = await this.#made.get()
    if (modelId === undefined) return page
    return publicPage({ ...comparison, models: comparison.models.filter(({ model }) => model === modelId) }, pageSeconds)
  }

  #compare({ prices, rate }: PriceFacts): Comparison {
    const { clock, catalog, feeds, everyMs } = this.#options
    const ageMs = Math.max(0, clock.nowMs() - Math.min(prices?.fetchedAtMs ?? 0, rate?.fetchedAtMs ?? 0))
    const inrPerUsd = rate === null ? null : decimalOf(rate.inrPerUsd)
    const index = prices === null ? null : indexPrices(prices.list)
    return {
      currency: 'INR',
      usd_inr: rate === null ? null : Number(rate.inrPerUsd),
      source: feeds.host,
      fetched_at: prices === null ? null : new Date(prices.fetchedAtMs).toISOString(),
      age_hours: prices === null || rate === null ? null : Math.floor(ageMs / hourMs),
      stale: feeds.isOn && ageMs > everyMs * lateness,
      models: index === null || inrPerUsd === null ? [] : [...catalog.snapshot.models.values()].flatMap(model => comparedModel(model, index, inrPerUsd)),
    }
  }
}

/** Compares models that are priced by tokens. Other models have no comparable price. */
function comparedModel(model: Model, index: PriceIndex, inrPerUsd: Decimal): ComparedModel[] {
  const route = model.kind === 'chat' || model.kind === 'embedding' ? cheapestRoute(model) : undefined
  const theirs = route === undefined ? null : matchOf(model, index)
  const prices = theirs === null ? null : { input: decimalOf(theirs.input), output: decimalOf(theirs.output) }
  if (route === undefined || theirs === null || !prices?.input || !prices.output) return []
  const { inputUinrPerMtok, outputUinrPerMtok } = route.price
  const input = uinrPerMtokOf(prices.input, inrPerUsd)
  const output = uinrPerMtokOf(prices.output, inrPerUsd)
  return [
    {
      model: model.id,
      provider: route.provider.id,
      inputINRPerMtok: inrFromUinr(inputUinrPerMtok),
      outputINRPerMtok: inrFromUinr(outputUinrPerMtok),
      compared_with: { id: theirs.id, inputINRPerMtok: toFourDecimals(input), outputINRPerMtok: toFourDecimals(output) },
      difference_percent: { input: percent(inputUinrPerMtok, input), output: percent(outputUinrPerMtok, output) },
    },
  ]
}

const toFourDecimals = (uinr: bigint): number => inrFromUinr(roundedDivision(uinr, 100n) * 100n)

/** Returns the difference in percent, with one decimal. */
const percent = (ours: bigint, theirs: bigint): number | null => (theirs === 0n ? null : Number(roundedDivision((ours - theirs) * 1000n, theirs)) / 10)
