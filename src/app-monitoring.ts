/** Health of collections: canaries through inference, alerts through mail and webhooks, as services of rows. */
import type { AppParts } from './app-services.ts'
import { alertWindowMs, watchAlerts } from './gateway/collections/alert-watch.ts'
import { Alerts } from './gateway/collections/alerts.ts'
import { CanaryBudget } from './gateway/collections/canary-budget.ts'
import { CanaryWorker } from './gateway/collections/canary-worker.ts'
import { healthSweepMs, sweepHealth } from './gateway/collections/health-sweep.ts'
import { Monitor } from './gateway/collections/monitor.ts'
import type { InferenceDeps } from './gateway/inference/deps.ts'
import { isProbed, probeStep } from './gateway/inference/probe.ts'
import type { Webhooks } from './gateway/webhooks/webhooks.ts'

/** Begins to look for rounds that are due; `monitor.stop` ends that. */
export function monitoringServices(parts: AppParts, inference: InferenceDeps, webhooks: Webhooks) {
  const { db, clock, ids, log, config, catalog, mail, jobs, baseUrl } = parts
  const everyS = config.MONITOR_EVERY_S
  const timeoutS = config.MONITOR_TIMEOUT_S
  const windowMs = alertWindowMs(config.ALERT_WINDOW_S, everyS)
  const kinds = { kindOf: (modelId: string) => catalog.snapshot.models.get(modelId)?.kind ?? null }
  const probes = { ...inference, ...kinds, probeTimeoutMs: timeoutS * 1000 }
  const alerting = { clock, ids, mail, baseUrl, windowMs, cooldownMs: config.ALERT_COOLDOWN_S * 1000 }
  const budget = new CanaryBudget({ orgDayMax: config.CANARIES_ORG_MAX, dayMax: config.CANARIES_MAX })
  const worker = new CanaryWorker({
    budget,
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
