/** Organisations' own keys at providers. */
import type { AppParts } from './app-services.ts'
import { probeKey } from './gateway/byok/probe.ts'
import { ProviderKeys } from './gateway/byok/provider-keys.ts'

/** A person waits for it at the console. */
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
