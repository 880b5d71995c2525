/** What anybody may read about models: how they do, which are used most, what they cost elsewhere. */
import type { AppParts } from './app-services.ts'
import { PriceComparison } from './gateway/catalog/price-comparison.ts'
import { PriceFeeds, priceFeedsEveryMs } from './gateway/catalog/price-feeds.ts'
import { PublicUsage } from './gateway/usage/public-usage.ts'

interface PublicDataServices {
  readonly publicUsage: PublicUsage
  readonly priceComparison: PriceComparison
}

export function publicDataServices({ db, clock, log, config, catalog, outbound, jobs }: AppParts): PublicDataServices {
  const everyMs = config.PRICE_FEED_EVERY_S * 1000
  const feeds = new PriceFeeds({
    db,
    clock,
    log,
    dial: request => outbound.toProvider(request),
    pricesUrl: config.PRICE_FEED_URL,
    rateUrl: config.FX_URL,
    everyMs,
  })
  if (feeds.isOn) jobs.every('catalog.price_feeds', priceFeedsEveryMs, signal => feeds.keepFresh(signal))
  return {
    publicUsage: new PublicUsage({ db, clock, log, catalog, isPublic: config.PUBLIC_STATS }),
    priceComparison: new PriceComparison({ clock, log, catalog, feeds, everyMs }),
  }
}
