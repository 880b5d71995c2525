import { Readable } from 'node:stream'
import type { Clock } from '../../platform/clock.ts'
import type { Config } from '../../platform/config.ts'
import type { Db } from '../../platform/db/db.ts'
import type { ControlLog } from '../../platform/db/db-control-log.ts'
import type { Log } from '../../platform/observe/log.ts'
import type { Outbound, OutboundRequest } from '../../platform/outbound/outbound.ts'
import type { OutboundReply } from '../../platform/outbound/upstream-body.ts'
import type { AddressTests } from '../../platform/security/address-tests.ts'
import type { Secret } from '../../platform/security/secret.ts'
import type { Sealer } from '../../platform/security/secrets.ts'
import type { Catalog } from '../catalog/catalog.ts'
import { sendAuthorised } from '../cloud/authorise.ts'
import type { GivenCredentials } from '../cloud/given-credentials.ts'
import type { Identities } from '../cloud/identities.ts'
import type { Provider } from '../providers/provider.ts'
import { testCompliance } from './checks/compliance-run.ts'
import { CustomServers } from './custom-servers/custom-servers.ts'
import { type ProbeOutcome, probeKey } from './probe.ts'
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
  /** Authorises the tests of credentials that expire. */
  readonly identities: Pick<Identities, 'of'>
}

export interface Byok {
  readonly providerKeys: ProviderKeys
  readonly customServers: CustomServers
}

/** Constructs the services for an organisation's own keys and own servers. */
export function createByok({ db, clock, log, config, sealer, controlLog, catalog, outbound, addressTests, baseUrl, identities }: ByokDeps): Byok {
  const parts = { db, clock, log, sealer, controlLog }
  return {
    providerKeys: new ProviderKeys({
      ...parts,
      enabled: config.BYOK,
      providers: () => catalog.snapshot.providers,
      probe: (provider, key, credentials) => probeOwn(provider, key, credentials, outbound, identities, clock),
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

/** Tests a key or credentials of an organisation. An address that the organisation chose is reached through the URL guard only. */
function probeOwn(
  provider: Provider,
  key: Secret,
  credentials: GivenCredentials | null,
  outbound: Outbound,
  identities: Pick<Identities, 'of'>,
  clock: Clock,
): Promise<ProbeOutcome> {
  const dial = (request: OutboundRequest): Promise<OutboundReply> => (provider.isOrgPlace === true ? outbound.toUserUrl(request) : outbound.toProvider(request))
  if (credentials === null) return probeKey(provider, key, { dial, timeoutMs: probeTimeoutMs })
  const authorised = (request: OutboundRequest): Promise<OutboundReply> => {
    const { method, url, headers, body } = request
    if (body instanceof Readable) throw new TypeError('a signature covers the whole body')
    const whole = { method: method === 'GET' ? ('GET' as const) : ('POST' as const), url, headers, body }
    return sendAuthorised(identities.of(provider, credentials), whole, { dial: made => dial({ ...request, headers: made }), nowMs: () => clock.nowMs() })
  }
  return probeKey(provider, null, { dial, authorised, timeoutMs: probeTimeoutMs })
}
