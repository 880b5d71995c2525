/** Constructs the services for an organisation's own keys and own servers. */

import { testCompliance } from '../../gateway/byok/checks/compliance-run.ts'
import { CustomServers } from '../../gateway/byok/custom-servers/custom-servers.ts'
import { probeKey } from '../../gateway/byok/probe.ts'
import { ProviderKeys } from '../../gateway/byok/provider-keys.ts'
import type { AppParts } from '../parts.ts'

/** The time limit is short because a person waits for the result at the console. */
const probeTimeoutMs = 15_000

export function createProviderKeys({ db, clock, log, sealer, controlLog, config, catalog, outbound }: AppParts): ProviderKeys {
  return new ProviderKeys({
    db,
    clock,
    log,
    sealer,
    controlLog,
    enabled: config.BYOK,
    providers: () => catalog.snapshot.providers,
    probe: (provider, key) => probeKey(provider, key, { dial: request => outbound.toProvider(request), timeoutMs: probeTimeoutMs }),
  })
}

/** The time limit is short because a person waits for the result at the console. */
const testTimeoutMs = 30_000

export function createCustomServers({ db, clock, log, sealer, controlLog, config, catalog, outbound, baseUrl, addressTests }: AppParts): CustomServers {
  return new CustomServers({
    db,
    clock,
    log,
    sealer,
    controlLog,
    addressTests,
    enabled: config.CUSTOM_ENDPOINTS,
    guard: outbound.guard,
    baseUrl,
    modelOf: id => catalog.snapshot.models.get(id),
    test: (candidate, signal) => testCompliance(candidate, signal, { dial: request => outbound.toUserUrl(request), clock, timeoutMs: testTimeoutMs }),
  })
}
