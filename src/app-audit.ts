/** The audit trail as a service of rows, and what the edges know of callers whom nobody vouches for. */
import type { AppDeps } from './app-deps.ts'
import type { AppParts } from './app-services.ts'
import { otherMasterKeys } from './boot.ts'
import { auditSweepMs } from './gateway/audit/audit.ts'
import { AnonymousLimit } from './gateway/http/anonymous.ts'
import { clientIpOf } from './gateway/http/client-ip.ts'
import { DeviceCookies } from './gateway/http/device-cookie.ts'
import type { EdgeDeps } from './gateway/http/edge.ts'
import { PersonLimit } from './gateway/http/person-limit.ts'
import { addressRangesOf } from './platform/address-ranges.ts'

export function auditServices({ audit, jobs }: AppParts) {
  jobs.every('audit.sweep', auditSweepMs, async () => {
    await audit.sweep()
  })
  return { audit }
}

/** Where a request comes from, and how often strangers and signed-in people may call. */
export function strangers(
  { config, clock, ids, dataDir, masterKey }: AppDeps,
  baseUrl: () => string,
): Pick<EdgeDeps, 'clientIp' | 'countAnonymous' | 'countPerson'> {
  const clientIp = clientIpOf(addressRangesOf(config.TRUSTED_PROXIES).ranges)
  const cookies = new DeviceCookies({ clock, ids, masterKey, otherMasterKeys: otherMasterKeys(config, dataDir), baseUrl })
  const limit = new AnonymousLimit({ clock, perMinute: config.ANON_RPM, cookies, clientIp })
  const people = new PersonLimit(clock, config.CONSOLE_RPM)
  return { clientIp, countAnonymous: (request, response) => limit.count(request, response), countPerson: userId => people.count(userId) }
}
