/** Reports of usage, as services of rows, and the job that deletes events which are too old. */
import type { AppParts } from './app-services.ts'
import { Activity } from './gateway/usage/activity.ts'
import { ActivityEvents } from './gateway/usage/activity-events.ts'
import { UsageReports } from './gateway/usage/reports.ts'
import { UsageOverview } from './gateway/usage/usage-overview.ts'
import { deleteOldUsage, retentionEveryMs } from './gateway/usage/usage-retention.ts'

export function reportServices({ db, clock, log, config, agents, limits, jobs }: AppParts) {
  const retention = { db, clock, log, keepDays: config.USAGE_KEEP_DAYS }
  jobs.every('usage.retention', retentionEveryMs, async signal => {
    await deleteOldUsage(retention, signal)
  })
  const deps = { db, clock, flushNow: () => limits.flushNow() }
  return {
    usage: new UsageReports({ ...deps, agentNames: (orgId, agentIds) => agents.names(orgId, agentIds) }),
    usageOverview: new UsageOverview(deps),
    activity: new Activity(deps),
    activityEvents: new ActivityEvents(deps),
  }
}
