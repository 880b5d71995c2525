/** Where calls of an organisation may go: saved chains, saved keys, own servers, the retention window. */
import type { AppParts } from './app-services.ts'
import type { CustomServers } from './gateway/byok/custom-servers.ts'
import type { ProviderKeys } from './gateway/byok/provider-keys.ts'
import { orgChanged } from './gateway/orgs/orgs.ts'
import { Chains } from './gateway/routing/chains.ts'
import { OrgRoutings } from './gateway/routing/org-routing.ts'

export function routingServices(parts: AppParts, providerKeys: ProviderKeys, customServers: CustomServers) {
  const { db, clock, controlLog, config, orgs, catalog } = parts
  const chains = new Chains({
    db,
    clock,
    controlLog,
    catalog: () => catalog.snapshot,
    customReferences: async orgId => new Set((await customServers.ofOrg(orgId)).map(route => route.provider.id)),
  })
  const orgRoutings = new OrgRoutings({
    clock,
    controlLog,
    cacheTtlMs: config.CACHE_TTL_MS,
    settingsChanged: orgChanged,
    retentionDays: async orgId => (await orgs.find(orgId))?.retentionDays ?? 0,
    savedKeys: orgId => providerKeys.ofOrg(orgId),
    customRoutes: orgId => customServers.ofOrg(orgId),
    chains: orgId => chains.ofOrg(orgId),
  })
  return { chains, orgRoutings }
}
