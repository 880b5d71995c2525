/** Constructs the usage reports, and the job that deletes events that are too old. */
import { Activity } from '../../gateway/usage/activity/activity.ts'
import { ActivityEvents } from '../../gateway/usage/activity/activity-events.ts'
import { anomalySweepMs, sweepAnomalies } from '../../gateway/usage/anomalies/anomaly-sweep.ts'
import { deleteOldUsage, retentionEveryMs } from '../../gateway/usage/events/usage-retention.ts'
import { UsageReports } from '../../gateway/usage/reports/reports.ts'
import { UsageOverview } from '../../gateway/usage/reports/usage-overview.ts'
import type { AppDeps } from '../deps.ts'
import type { Domains } from '../domains.ts'
import type { AppParts } from '../parts.ts'

export function reportServices({ db, clock, log, config, agents, limits, jobs }: AppParts) {
  const retention = { db, clock, log, keepDays: config.USAGE_KEEP_DAYS }
  jobs.every('usage.retention', retentionEveryMs, async signal => {
    await deleteOldUsage(retention, signal)
  })
  const deps = { db, clock, journal: limits }
  return {
    usage: new UsageReports({ ...deps, agentNames: (orgId, agentIds) => agents.names(orgId, agentIds) }),
    usageOverview: new UsageOverview(deps),
    activity: new Activity(deps),
    activityEvents: new ActivityEvents(deps),
  }
}

/** Registers the sweep that looks for anomalies in the usage of organisations. */
export function watchUsage({ db, clock, ids }: AppDeps, { limits, jobs }: Domains): void {
  const sweep = { db, clock, ids, journal: limits }
  jobs.every('usage.anomalies', anomalySweepMs, signal => sweepAnomalies(sweep, signal))
}
