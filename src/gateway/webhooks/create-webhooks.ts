import type { Clock } from '../../platform/clock.ts'
import type { Config } from '../../platform/config.ts'
import type { Db } from '../../platform/db/db.ts'
import type { Jobs } from '../../platform/db/jobs.ts'
import type { Log } from '../../platform/observe/log.ts'
import type { Outbound } from '../../platform/outbound/outbound.ts'
import type { AddressTests } from '../../platform/security/address-tests.ts'
import type { Sealer } from '../../platform/security/secrets.ts'
import type { Ids } from '../../platform/values/ids.ts'
import { sweepWebhooks, webhookSweepMs } from './delivery/delivery-sweep.ts'
import { Outcomes, type OutcomesDeps } from './delivery/outcomes.ts'
import { retrySchedule } from './delivery/schedule.ts'
import { WebhookDeliveries } from './delivery/webhook-deliveries.ts'
import { DeliveryWorker } from './delivery/worker.ts'
import { Webhooks } from './webhooks.ts'

/** How long running deliveries may continue when the worker stops. */
const stopGraceMs = 5_000

export interface CreateWebhooksDeps extends Pick<OutcomesDeps, 'mail' | 'baseUrl' | 'onDisabled'> {
  readonly db: Db
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly config: Config
  readonly outbound: Outbound
  readonly sealer: Sealer
  readonly addressTests: AddressTests
  readonly userAgent: string
}

export interface WebhookServices {
  readonly webhooks: Webhooks
  readonly webhookDeliveries: WebhookDeliveries
  /** Calls `fn` whenever this process has changed deliveries of an endpoint. There is one follower. */
  followDeliveries(fn: (orgId: number, endpointId: number) => void): void
  /** Starts sending and registers the sweep. The returned function stops sending. */
  start(jobs: Jobs): () => Promise<void>
}

/** Constructs the webhook services. Throws ConfigError if WEBHOOK_RETRY_S is invalid. No webhook is sent before `start`. */
export function createWebhooks(deps: CreateWebhooksDeps): WebhookServices {
  const { db, clock, ids, log, config, outbound, sealer, addressTests, mail, baseUrl, onDisabled, userAgent } = deps
  const schedule = retrySchedule(config.WEBHOOK_RETRY_S)
  const outcomes = new Outcomes({ db, clock, ids, log, mail, schedule, failuresMax: config.WEBHOOK_DISABLE_FAILURES, baseUrl, onDisabled })
  const limits = { pollMs: config.WEBHOOK_POLL_MS, timeoutMs: config.WEBHOOK_TIMEOUT_MS, concurrency: config.WEBHOOK_CONCURRENCY, stopGraceMs }
  const worker = new DeliveryWorker({ db, clock, ids, log, outbound, sealer, outcomes, schedule, userAgent, ...limits })
  return {
    webhooks: new Webhooks({ db, clock, ids, sealer, guard: outbound.guard, addressTests, endpointsMax: config.WEBHOOK_ENDPOINTS_MAX }),
    webhookDeliveries: new WebhookDeliveries({ db, clock, ids, addressTests }),
    followDeliveries(fn) {
      outcomes.onChanged = fn
    },
    start(jobs) {
      jobs.every('webhooks.sweep', webhookSweepMs, async signal => {
        await sweepWebhooks(db, clock.nowMs(), config.WEBHOOK_KEEP_DAYS, signal)
      })
      return worker.start()
    },
  }
}
