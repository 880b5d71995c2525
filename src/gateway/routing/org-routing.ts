/** The settings of an organisation that decide where its calls may go. They are cached as one value, so a call waits for at most one look-up. */
import type { Clock } from '../../platform/clock.ts'
import type { ControlLog } from '../../platform/db/db-control-log.ts'
import { ExpiringCache } from '../../platform/loop/expiring-cache.ts'
import { type CustomRoute, orgRoutingChanged, type SavedKey } from '../byok/org-credentials.ts'
import type { ChainStep } from '../wire/chat/router-fields.ts'

export interface OrgRouting {
  readonly orgId: number
  /** How many days a provider may keep content. With 0, models that require the provider to keep content are refused. */
  readonly retentionDays: number
  /** The saved keys by provider id. */
  readonly savedKeys: ReadonlyMap<string, SavedKey>
  /** The organisation's own servers by reference (`byoe:<slug>`). */
  readonly customRoutes: ReadonlyMap<string, CustomRoute>
  /** Saved chains by model id. */
  readonly chains: ReadonlyMap<string, readonly ChainStep[]>
}

export interface OrgRoutingsDeps {
  readonly clock: Clock
  readonly controlLog: ControlLog
  /** CACHE_TTL_MS. */
  readonly cacheTtlMs: number
  /** The kind of event that reports changed settings of an organisation. Its ref is the organisation's id. */
  readonly settingsChanged: string
  retentionDays(orgId: number): Promise<number>
  savedKeys(orgId: number): Promise<ReadonlyMap<string, SavedKey>>
  customRoutes(orgId: number): Promise<readonly CustomRoute[]>
  chains(orgId: number): Promise<ReadonlyMap<string, readonly ChainStep[]>>
}

const orgsCachedMax = 20_000
/** Maximum number of bytes of cached settings. The lists of models of saved keys and the chains of one organisation may have megabytes. */
const cachedBytesMax = 128 * 1024 * 1024
/** Bytes in memory of a value without its texts, and of a text without its characters. */
const valueBytes = 2_048
const textBytes = 32

/** Returns about how many bytes of memory the settings take. */
export function bytesOfRouting({ savedKeys, customRoutes, chains }: OrgRouting): number {
  let bytes = valueBytes * (1 + savedKeys.size + customRoutes.size)
  for (const { models } of savedKeys.values()) for (const id of models) bytes += textBytes + 2 * id.length
  for (const steps of chains.values()) for (const step of steps) bytes += 2 * textBytes + 2 * step.model.length
  return bytes
}

/**
 * Caches the routing settings of each organisation. This process sees a change immediately. Other processes see it within a second. If the event is
 * lost, they see it after the lifetime of the cache.
 */
export class OrgRoutings {
  readonly #cache: ExpiringCache<number, OrgRouting>

  constructor(deps: OrgRoutingsDeps) {
    this.#cache = new ExpiringCache({
      max: orgsCachedMax,
      bytes: { max: cachedBytesMax, sizeOf: bytesOfRouting },
      ttlMs: deps.cacheTtlMs,
      clock: deps.clock,
      load: orgId => load(orgId, deps),
    })
    deps.controlLog.on(news => {
      if (news.kind === orgRoutingChanged || news.kind === deps.settingsChanged) this.#cache.invalidate(Number(news.ref))
    })
    deps.controlLog.onGap(() => this.#cache.clear())
  }

  /** Returns the settings of an organisation. The result is synchronous when the settings are cached. */
  get(orgId: number): OrgRouting | Promise<OrgRouting> {
    const found = this.#cache.get(orgId)
    return found instanceof Promise ? found.then(value => value ?? nothingOf(orgId)) : (found ?? nothingOf(orgId))
  }
}

async function load(orgId: number, deps: OrgRoutingsDeps): Promise<OrgRouting> {
  const [retentionDays, savedKeys, customRoutes, chains] = await Promise.all([
    deps.retentionDays(orgId),
    deps.savedKeys(orgId),
    deps.customRoutes(orgId),
    deps.chains(orgId),
  ])
  return { orgId, retentionDays, savedKeys, customRoutes: new Map(customRoutes.map(route => [route.provider.id, route])), chains }
}

const nothingOf = (orgId: number): OrgRouting => ({ orgId, retentionDays: 0, savedKeys: new Map(), customRoutes: new Map(), chains: new Map() })
