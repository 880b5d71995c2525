import { Catalog } from '../../gateway/catalog/catalog.ts'
import { loadCatalog } from '../../gateway/catalog/loading/load.ts'
import { findLocalServers } from '../../gateway/catalog/loading/local-servers.ts'
import { sandboxIsWanted, sandboxProvider } from '../../gateway/catalog/loading/sandbox.ts'
import { PriceComparison } from '../../gateway/catalog/prices/price-comparison.ts'
import { PriceFeeds, priceFeedsEveryMs } from '../../gateway/catalog/prices/price-feeds.ts'
import { PublicUsage } from '../../gateway/usage/public/public-usage.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Config } from '../../platform/config.ts'
import type { Log } from '../../platform/observe/log.ts'
import type { Outbound } from '../../platform/outbound/outbound.ts'
import type { Ids } from '../../platform/values/ids.ts'
import { startSandbox } from '../../sandbox/sandbox.ts'
import type { AppParts } from '../parts.ts'

interface CatalogStart {
  readonly config: Config
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly outbound: Outbound
}

export interface StartedCatalog {
  readonly catalog: Catalog
  stopSandbox(): Promise<void>
}

/** Maximum size in bytes of a model list from a local server. */
const listMaxBytes = 1024 * 1024

/**
 * Returns the catalog of this process. It consists of the catalog's data, the operator's file, the local servers that answer, and the sandbox if it
 * is enabled.
 */
export async function startCatalog(start: CatalogStart): Promise<StartedCatalog> {
  const { config, clock, ids, outbound } = start
  const getJson = async (url: string, timeoutMs: number): Promise<unknown> => {
    const reply = await outbound.toProvider({ method: 'GET', url, headers: { accept: 'application/json' }, signal: AbortSignal.timeout(timeoutMs) })
    if (reply.status !== 200) {
      reply.body.destroy()
      throw new Error(`status ${reply.status}`)
    }
    return JSON.parse((await reply.body.buffer(listMaxBytes)).toString('utf8'))
  }
  const local = config.LOCAL_SERVERS ? await findLocalServers({ config, getJson, ownPorts: [config.PORT] }) : []
  const base = loadCatalog({ config, clock, extraProviders: local })
  if (!sandboxIsWanted(config, base)) return { catalog: new Catalog(base), stopSandbox: () => Promise.resolve() }
  const sandbox = await startSandbox({ clock, ids, host: '127.0.0.1' })
  const snapshot = loadCatalog({ config, clock, extraProviders: [...local, sandboxProvider(sandbox.url)] })
  return { catalog: new Catalog(snapshot), stopSandbox: () => sandbox.close() }
}

/** The public data about models: performance, usage, and prices at another router. */
interface PublicDataServices {
  readonly publicUsage: PublicUsage
  readonly priceComparison: PriceComparison
}

/** Constructs the services for public data. When there are price feeds, it also registers the job that fetches them. */
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
