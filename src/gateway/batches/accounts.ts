import type { Outbound } from '../../platform/outbound/outbound.ts'
import type { CatalogSnapshot } from '../catalog/model.ts'
import type { OrgRouting } from '../routing/org-routing.ts'
import { ProviderAccount } from './provider/provider-account.ts'

/** Whose account at which provider has a file or a batch. */
export interface AccountRef {
  readonly orgId: number
  readonly provider: string
  readonly byok: boolean
}

/** Finds the accounts of files and batches. The credential is the present one, because a batch may outlive the key with which it was made. */
export class Accounts {
  readonly #outbound: Outbound
  readonly #catalog: () => CatalogSnapshot
  readonly #orgRouting: (orgId: number) => OrgRouting | Promise<OrgRouting>

  constructor(outbound: Outbound, catalog: () => CatalogSnapshot, orgRouting: (orgId: number) => OrgRouting | Promise<OrgRouting>) {
    this.#outbound = outbound
    this.#catalog = catalog
    this.#orgRouting = orgRouting
  }

  /** Returns the account. Null when the provider or its key is gone, or when the organisation now has something there that is no key for this address. */
  async of({ orgId, provider: id, byok }: AccountRef): Promise<ProviderAccount | null> {
    const provider = this.#catalog().providers.get(id)
    if (provider === undefined) return null
    if (!byok) return provider.configured ? new ProviderAccount(provider, provider.platformKey, this.#outbound) : null
    const saved = (await this.#orgRouting(orgId)).savedKeys.get(id)
    // A key for a place of the organisation, or the text of credentials, must never go to the operator's address.
    if (saved?.provider !== undefined || saved?.credentials !== undefined) return null
    return saved === undefined ? null : new ProviderAccount(provider, saved.key, this.#outbound)
  }
}
