import type { Config } from '../../platform/config.ts'
import type { Db } from '../../platform/db/db.ts'
import type { ControlLog } from '../../platform/db/db-control-log.ts'
import type { Jobs } from '../../platform/db/jobs.ts'
import type { Log } from '../../platform/observe/log.ts'
import type { Chains } from '../routing/chains.ts'
import { type AlertWatchDeps, alertWindowMs, watchAlerts } from './alerts/alert-watch.ts'
import { Alerts, type AlertsDeps } from './alerts/alerts.ts'
import { CanaryBudget } from './canaries/canary-budget.ts'
import { CanaryWorker, type CanaryWorkerDeps } from './canaries/canary-worker.ts'
import { CollectionRegistry } from './collection-registry.ts'
import { CollectionSharing } from './collection-sharing.ts'
import { Collections } from './collections.ts'
import { healthSweepMs, sweepHealth } from './monitoring/health-sweep.ts'
import { Monitor, type MonitorDeps } from './monitoring/monitor.ts'

export interface CreateCollectionsDeps extends Pick<AlertWatchDeps, 'clock' | 'ids' | 'mail' | 'baseUrl'> {
  readonly db: Db
  readonly log: Log
  readonly config: Config
  readonly controlLog: ControlLog
  readonly jobs: Jobs
  readonly chains: Chains
  readonly webhooks: AlertsDeps['webhooks']
  /** Returns a number for the founder of an organisation. */
  readonly holderOf: (orgId: number) => Promise<number>
  /** Makes one canary. */
  readonly probeStep: CanaryWorkerDeps['probeStep']
  /** Returns whether a step of a collection can have canaries. */
  readonly isProbed: MonitorDeps['isProbed']
}

export interface CollectionServices {
  readonly collections: Collections
  readonly collectionSharing: CollectionSharing
  readonly collectionRegistry: CollectionRegistry
  readonly monitor: Monitor
  readonly alerts: Alerts
}

/** Constructs the services for collections and starts to look for due monitoring rounds. `monitor.stop` ends that search. */
export function createCollections(deps: CreateCollectionsDeps): CollectionServices {
  const { db, clock, ids, log, config, controlLog, jobs, chains, webhooks, mail, baseUrl, holderOf, probeStep, isProbed } = deps
  const collections = new Collections({ db, clock, ids, controlLog, chains, collectionsMax: config.COLLECTIONS_MAX })
  const collectionRegistry = new CollectionRegistry({ db, clock, log, controlLog })
  const collectionSharing = new CollectionSharing({ db, clock, controlLog, chains, collections, counted: slug => collectionRegistry.counted(slug) })
  const everyS = config.MONITOR_EVERY_S
  const timeoutS = config.MONITOR_TIMEOUT_S
  const windowMs = alertWindowMs(config.ALERT_WINDOW_S, everyS)
  const alerting = { clock, ids, mail, baseUrl, windowMs, cooldownMs: config.ALERT_COOLDOWN_S * 1000 }
  const budget = new CanaryBudget({ orgDayMax: config.CANARIES_ORG_MAX, dayMax: config.CANARIES_MAX })
  const afterRound: CanaryWorkerDeps['afterRound'] = (tx, round) => watchAlerts(tx, round, alerting)
  const worker = new CanaryWorker({ budget, holderOf, db, clock, log, everyS, probeStep, afterRound })
  const monitor = new Monitor({ db, clock, ids, worker, budget, holderOf, everyS, timeoutS, monitoredMax: config.MONITORED_MAX, isProbed })
  const alerts = new Alerts({ db, clock, webhooks, timeoutS, alertsMax: config.ALERTS_MAX, sendsMail: config.SMTP_URL !== null })
  jobs.every('collections.health', healthSweepMs, signal => sweepHealth(db, clock.nowMs(), windowMs, signal))
  worker.start()
  return { collections, collectionSharing, collectionRegistry, monitor, alerts }
}
