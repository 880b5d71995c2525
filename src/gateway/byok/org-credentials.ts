/** What an organisation brings along for its calls: keys of its own at providers, servers of its own. Routing plans with it. */
import type { Secret } from '../../platform/security/secret.ts'
import type { Provider } from '../providers/provider.ts'

/** A saved and verified key at a provider. */
export interface SavedKey {
  readonly key: Secret
  /** True: used ahead of the platform's key. */
  readonly alwaysUse: boolean
  /** Model ids that the provider listed, as the provider writes them. */
  readonly models: readonly string[]
}

/** A registered server that serves a catalog model; addressed as `byoe:<slug>`. */
export interface CustomRoute {
  readonly slug: string
  /** The catalog model that it serves. */
  readonly modelId: string
  /** `id` is `byoe:<slug>`, `userGiven` is true: dialed through the guarded client only. */
  readonly provider: Provider
  readonly upstreamModel: string
  /** `stateKey` of its route: unique over all organisations, and new for a server that is registered again. */
  readonly stateKey: string
}

/** Kind of the news that something of this changed; the ref is the organisation's id. */
export const orgRoutingChanged = 'org_routing_changed'
