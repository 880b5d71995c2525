/** Constructs the services for the health of collections: canaries through inference, and alerts through mail and webhooks. */
import { alertWindowMs, watchAlerts } from '../../gateway/collections/alerts/alert-watch.ts'
import { Alerts } from '../../gateway/collections/alerts/alerts.ts'
import { CanaryBudget } from '../../gateway/collections/canaries/canary-budget.ts'
import { CanaryWorker } from '../../gateway/collections/canaries/canary-worker.ts'
import { CollectionRegistry } from '../../gateway/collections/collection-registry.ts'
import { CollectionSharing } from '../../gateway/collections/collection-sharing.ts'
import { Collections } from '../../gateway/collections/collections.ts'
import { healthSweepMs, sweepHealth } from '../../gateway/collections/monitoring/health-sweep.ts'
import { Monitor } from '../../gateway/collections/monitoring/monitor.ts'
import type { InferenceDeps } from '../../gateway/inference/deps.ts'
import { isProbed, probeStep } from '../../gateway/inference/probe/probe.ts'
import type { Chains } from '../../gateway/routing/chains.ts'
import type { Webhooks } from '../../gateway/webhooks/webhooks.ts'
import type { AppParts } from '../parts.ts'

/** Constructs the monitoring and starts to look for due rounds. `monitor.stop` ends it. */
export function monitoringServices(parts: AppParts, inference: InferenceDeps, webhooks: Webhooks) {
  const { db, clock, ids, log, config, catalog, mail, jobs, founders, baseUrl } = parts
  const everyS = config.MONITOR_EVERY_S
  const timeoutS = config.MONITOR_TIMEOUT_S
  const windowMs = alertWindowMs(config.ALERT_WINDOW_S, everyS)
  const kinds = { kindOf: (modelId: string) => catalog.snapshot.models.get(modelId)?.kind ?? null }
  const probes = { ...inference, ...kinds, probeTimeoutMs: timeoutS * 1000 }
  const alerting = { clock, ids, mail, baseUrl, windowMs, cooldownMs: config.ALERT_COOLDOWN_S * 1000 }
  const holderOf = (orgId: number): Promise<number> => founders.numberOf(orgId)
  const budget = new CanaryBudget({ orgDayMax: config.CANARIES_ORG_MAX, dayMax: config.CANARIES_MAX })
  const worker = new CanaryWorker({
    budget,
    holderOf,
    db,
    clock,
    log,
    everyS,
    probeStep: (probed, signal) => probeStep(probed, signal, probes),
    afterRound: (tx, round) => watchAlerts(tx, round, alerting),
  })
  const monitor = new Monitor({
    db,
    clock,
    ids,
    worker,
    budget,
    holderOf,
    everyS,
    timeoutS,
    monitoredMax: config.MONITORED_MAX,
    isProbed: (modelId, step) => isProbed(modelId, step.model, kinds),
  })
  const alerts = new Alerts({ db, clock, webhooks, timeoutS, alertsMax: config.ALERTS_MAX, sendsMail: config.SMTP_URL !== null })
  jobs.every('collections.health', healthSweepMs, signal => sweepHealth(db, clock.nowMs(), windowMs, signal))
  worker.start()
  return { monitor, alerts }
}

/** Constructs the services for collections. */
export function collectionServices({ db, clock, ids, log, controlLog, config }: AppParts, chains: Chains) {
  const collections = new Collections({ db, clock, ids, controlLog, chains, collectionsMax: config.COLLECTIONS_MAX })
  const collectionRegistry = new CollectionRegistry({ db, clock, log, controlLog })
  const collectionSharing = new CollectionSharing({ db, clock, controlLog, chains, collections, counted: slug => collectionRegistry.counted(slug) })
  return { collections, collectionSharing, collectionRegistry }
}
