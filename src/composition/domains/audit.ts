/** Constructs the audit trail, and the limits for anonymous and signed-in callers. */

import { auditSweepMs } from '../../gateway/audit/audit.ts'
import { AnonymousLimit } from '../../gateway/http/callers/anonymous.ts'
import { clientIpOf } from '../../gateway/http/callers/client-ip.ts'
import { DeviceCookies } from '../../gateway/http/callers/device-cookie.ts'
import { PersonLimit } from '../../gateway/http/callers/person-limit.ts'
import type { EdgeDeps } from '../../gateway/http/edge.ts'
import { addressRangesOf } from '../../platform/outbound/address-ranges.ts'
import type { AppDeps } from '../deps.ts'
import { otherMasterKeys } from '../foundation.ts'
import type { AppParts } from '../parts.ts'

export function auditServices({ audit, jobs }: AppParts) {
  jobs.every('audit.sweep', auditSweepMs, async () => {
    await audit.sweep()
  })
  return { audit }
}

/** Returns functions that find the address of a request and limit the rate of anonymous and signed-in callers. */
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
