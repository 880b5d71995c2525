/** Where calls of an organisation may go: saved chains, saved keys, own servers, the retention window. */
import type { AppParts } from './app-services.ts'
import type { CustomServers } from './gateway/byok/custom-servers.ts'
import type { ProviderKeys } from './gateway/byok/provider-keys.ts'
import { Chains } from './gateway/routing/chains.ts'
import { OrgRoutings } from './gateway/routing/org-routing.ts'

export function routingServices(parts: AppParts, providerKeys: ProviderKeys, customServers: CustomServers) {
  const { db, clock, controlLog, config, orgs } = parts
  const chains = new Chains({ db })
  const orgRoutings = new OrgRoutings({
    clock,
    controlLog,
    cacheTtlMs: config.CACHE_TTL_MS,
    retentionDays: async orgId => (await orgs.find(orgId))?.retentionDays ?? 0,
    savedKeys: orgId => providerKeys.ofOrg(orgId),
    customRoutes: orgId => customServers.ofOrg(orgId),
    chains: orgId => chains.ofOrg(orgId),
  })
  return { chains, orgRoutings }
}
