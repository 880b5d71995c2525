/** Organisations' own OpenAI-compatible servers. */
import type { AppParts } from './app-services.ts'
import { testCompliance } from './gateway/byok/compliance-run.ts'
import { CustomServers } from './gateway/byok/custom-servers.ts'

/** A person waits for it at the console. */
const testTimeoutMs = 30_000

export function createCustomServers({ db, clock, log, sealer, controlLog, config, catalog, outbound, baseUrl }: AppParts): CustomServers {
  return new CustomServers({
    db,
    clock,
    log,
    sealer,
    controlLog,
    enabled: config.CUSTOM_ENDPOINTS,
    guard: outbound.guard,
    baseUrl,
    modelOf: id => catalog.snapshot.models.get(id),
    test: (candidate, signal) => testCompliance(candidate, signal, { dial: request => outbound.toUserUrl(request), clock, timeoutMs: testTimeoutMs }),
  })
}
