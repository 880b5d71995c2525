/**
 * Constructs the services that decide where calls of an organisation may go. They use its saved chains, saved provider keys, registered servers and retention
 * window.
 */

import type { CustomServers } from '../../gateway/byok/custom-servers/custom-servers.ts'
import type { ProviderKeys } from '../../gateway/byok/provider-keys.ts'
import { previewRequestOf } from '../../gateway/inference/probe/preview-request.ts'
import { orgChanged } from '../../gateway/orgs/orgs.ts'
import { Chains } from '../../gateway/routing/chains.ts'
import { OrgRoutings } from '../../gateway/routing/org-routing.ts'
import { discoveredModels } from '../../gateway/routing/own-models.ts'
import { RoutePreview } from '../../gateway/routing/preview/preview.ts'
import { fail } from '../../platform/errors.ts'
import { type CallPolicy, mayActFor, type Principal } from '../../platform/security/principal.ts'
import type { AppParts } from '../parts.ts'

export function routingServices(parts: AppParts, providerKeys: ProviderKeys, customServers: CustomServers) {
  const { db, clock, controlLog, config, orgs, catalog, circuits, health } = parts
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
  const routePreview = new RoutePreview({
    requestOf: body => previewRequestOf(body, catalog.snapshot, config.SERVICE_ID),
    world: orgId => ({ catalog: catalog.snapshot, circuits: circuits.of(orgId), health: health.of(orgId), clock }),
    orgRouting: orgId => orgRoutings.get(orgId),
    policiesOf: (caller, agentLabel) => policiesOf(caller, agentLabel, parts),
  })
  // The public catalog must work without the database. While the database is unavailable, the list omits the caller's own models.
  const ownModels = {
    of: async (caller: Principal | null) => {
      if (caller === null) return []
      const org = await Promise.resolve(orgRoutings.get(caller.orgId)).catch(() => null)
      return org === null ? [] : discoveredModels(org, catalog.snapshot)
    },
  }
  return { chains, orgRoutings, routePreview, ownModels }
}

/**
 * Returns the policies that apply to a real call. An agent token has the policies of its agent. When a key calls in the name of an agent, the
 * policies of both apply. A signed-in person has none.
 */
async function policiesOf(caller: Principal, agentLabel: string | null, { agents }: AppParts): Promise<readonly CallPolicy[]> {
  if (caller.kind === 'session') return []
  const named = caller.kind === 'agent' || agentLabel === null ? null : await agents.byLabel(caller.orgId, agentLabel)
  if (named?.status === 'revoked') throw fail('agent_revoked_label')
  return named === null || caller.kind === 'agent' || !mayActFor(caller, named.ownerUser) ? caller.policies : [...caller.policies, ...named.policies]
}
