/** Constructs the services for API keys, and the sweep over inactive keys. */

import { inactivitySweepMs, sweepInactivity } from '../../gateway/keys/inactivity/inactivity-sweep.ts'
import { KeyConsole } from '../../gateway/keys/key-console.ts'
import type { AppParts } from '../parts.ts'

export function keyServices({ db, clock, config, keys, limits, controlLog, mail, audit, jobs, baseUrl }: AppParts) {
  const sweep = {
    db,
    clock,
    controlLog,
    mail,
    use: keys.use,
    noticeDays: config.KEY_NOTICE_DAYS,
    baseUrl,
    onDisabled: (orgId: number, keyId: number) =>
      audit.record({ orgId, actor: 'system', act: 'disableInactiveKey', target: `key=${keyId}`, sourceIp: null, requestId: null }, 'ok'),
  }
  jobs.every('keys.inactivity', inactivitySweepMs, signal => sweepInactivity(sweep, signal))
  return { keys, keyConsole: new KeyConsole({ db, clock, keys, budgets: limits.budgets, journal: limits }) }
}
