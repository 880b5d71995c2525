/** Constructs the sender of webhooks and its regular jobs. */

import type { AuditTrail } from '../../gateway/audit/audit.ts'
import type { Mail } from '../../gateway/mail/mail.ts'
import { sweepWebhooks, webhookSweepMs } from '../../gateway/webhooks/delivery/delivery-sweep.ts'
import { Outcomes } from '../../gateway/webhooks/delivery/outcomes.ts'
import { retrySchedule } from '../../gateway/webhooks/delivery/schedule.ts'
import { DeliveryWorker } from '../../gateway/webhooks/delivery/worker.ts'
import type { Jobs } from '../../platform/db/jobs.ts'
import type { Outbound } from '../../platform/outbound/outbound.ts'
import type { Sealer } from '../../platform/security/secrets.ts'
import { version } from '../../version.ts'
import type { AppDeps } from '../deps.ts'

/** The time that running deliveries get when the worker stops. */
const stopGraceMs = 5_000

interface WebhookDelivery {
  /** Starts sending. The returned function stops it. */
  start(jobs: Jobs): () => Promise<void>
}

/** Returns the delivery. Throws ConfigError if WEBHOOK_RETRY_S is invalid. No webhook is sent before `start`. */
export function createWebhookDelivery(
  { db, clock, ids, log, config }: AppDeps,
  parts: { readonly outbound: Outbound; readonly sealer: Sealer; readonly mail: Mail; readonly audit: AuditTrail; readonly baseUrl: () => string },
): WebhookDelivery {
  const { outbound, sealer, mail, audit, baseUrl } = parts
  const schedule = retrySchedule(config.WEBHOOK_RETRY_S)
  const outcomes = new Outcomes({
    db,
    clock,
    ids,
    log,
    mail,
    schedule,
    failuresMax: config.WEBHOOK_DISABLE_FAILURES,
    baseUrl,
    onDisabled: (tx, orgId, endpointId) =>
      audit.recordIn(tx, { orgId, actor: 'system', act: 'disableWebhook', target: `webhook=${endpointId}`, sourceIp: null, requestId: null }, 'ok'),
  })
  const limits = { pollMs: config.WEBHOOK_POLL_MS, timeoutMs: config.WEBHOOK_TIMEOUT_MS, concurrency: config.WEBHOOK_CONCURRENCY, stopGraceMs }
  const worker = new DeliveryWorker({ db, clock, ids, log, outbound, sealer, outcomes, schedule, userAgent: `Brigade-Webhooks/${version}`, ...limits })
  return {
    start(jobs) {
      jobs.every('webhooks.sweep', webhookSweepMs, async signal => {
        await sweepWebhooks(db, clock.nowMs(), config.WEBHOOK_KEEP_DAYS, signal)
      })
      return worker.start()
    },
  }
}
