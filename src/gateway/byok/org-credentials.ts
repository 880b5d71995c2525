/** An organisation's own provider keys and own servers. Routing uses them in its plans. */
import type { Secret } from '../../platform/security/secret.ts'
import type { GivenCredentials } from '../cloud/given-credentials.ts'
import type { Provider } from '../providers/provider.ts'

/** A saved and verified key at a provider. */
export interface SavedKey {
  readonly key: Secret
  /** True when this key is used before the platform key. */
  readonly alwaysUse: boolean
  /** Model ids from the provider's list, in the provider's spelling. */
  readonly models: readonly string[]
  /** Credentials that expire, or that sign. `key` is then their text and is never sent. */
  readonly credentials?: GivenCredentials
  /** The provider at the place that the organisation chose. Left out when it chose none. */
  readonly provider?: Provider
}

/** A registered server for a catalog model. Calls name it as `byoe:<slug>`. */
export interface CustomRoute {
  readonly slug: string
  /** The catalog model that the server runs. */
  readonly modelId: string
  /** `id` is `byoe:<slug>`. `userGiven` is true, so the gateway connects only through the guarded client. */
  readonly provider: Provider
  readonly upstreamModel: string
  /** The `stateKey` of the server's route. It is unique over all organisations. A server that is registered again gets a new one. */
  readonly stateKey: string
}

/** The `kind` of the control-log item for changed own keys or own servers of an organisation. The item's `ref` is the organisation's id. */
export const orgRoutingChanged = 'org_routing_changed'
