import type { Clock } from '../../platform/clock.ts'
import type { Config } from '../../platform/config.ts'
import type { Db } from '../../platform/db/db.ts'
import type { ControlLog } from '../../platform/db/db-control-log.ts'
import type { Log } from '../../platform/observe/log.ts'
import type { Outbound } from '../../platform/outbound/outbound.ts'
import type { AddressTests } from '../../platform/security/address-tests.ts'
import type { Sealer } from '../../platform/security/secrets.ts'
import type { Catalog } from '../catalog/catalog.ts'
import { testCompliance } from './checks/compliance-run.ts'
import { CustomServers } from './custom-servers/custom-servers.ts'
import { probeKey } from './probe.ts'
import { ProviderKeys } from './provider-keys.ts'

/** The time limit of a test of a provider key. It is short because a person waits for the result at the console. */
export const probeTimeoutMs = 15_000
/** The time limit of a test of an own server. A person waits for this result too. */
const testTimeoutMs = 30_000

export interface ByokDeps {
  readonly db: Db
  readonly clock: Clock
  readonly log: Log
  readonly config: Config
  readonly sealer: Sealer
  readonly controlLog: ControlLog
  readonly catalog: Catalog
  readonly outbound: Outbound
  readonly addressTests: AddressTests
  readonly baseUrl: () => string
}

export interface Byok {
  readonly providerKeys: ProviderKeys
  readonly customServers: CustomServers
}

/** Constructs the services for an organisation's own keys and own servers. */
export function createByok({ db, clock, log, config, sealer, controlLog, catalog, outbound, addressTests, baseUrl }: ByokDeps): Byok {
  const parts = { db, clock, log, sealer, controlLog }
  return {
    providerKeys: new ProviderKeys({
      ...parts,
      enabled: config.BYOK,
      providers: () => catalog.snapshot.providers,
      probe: (provider, key) => probeKey(provider, key, { dial: request => outbound.toProvider(request), timeoutMs: probeTimeoutMs }),
    }),
    customServers: new CustomServers({
      ...parts,
      addressTests,
      enabled: config.CUSTOM_ENDPOINTS,
      guard: outbound.guard,
      baseUrl,
      modelOf: id => catalog.snapshot.models.get(id),
      test: (candidate, signal) => testCompliance(candidate, signal, { dial: request => outbound.toUserUrl(request), clock, timeoutMs: testTimeoutMs }),
    }),
  }
}
