import type { Jobs } from '../../platform/db/jobs.ts'
import { Activity } from './activity/activity.ts'
import { ActivityEvents } from './activity/activity-events.ts'
import { type AnomalySweepDeps, anomalySweepMs, sweepAnomalies } from './anomalies/anomaly-sweep.ts'
import { deleteOldHours, deleteOldUsage, type RetentionDeps, retentionEveryMs } from './events/usage-retention.ts'
import { UsageReports, type UsageReportsOptions } from './reports/reports.ts'
import { UsageOverview } from './reports/usage-overview.ts'
import { deleteRestingCounters, RunCapChanges, type RunCapChangesDeps } from './runs/caps/run-cap-changes.ts'
import { deleteOldEnds, RunEnds, type RunEndsDeps } from './runs/run-ends.ts'
import { deleteOldRunRows, Runs } from './runs/runs.ts'

export interface UsageDeps
  extends AnomalySweepDeps,
    RetentionDeps,
    Pick<UsageReportsOptions, 'agentNames' | 'displayRateOf'>,
    RunEndsDeps,
    Pick<RunCapChangesDeps, 'raising'> {
  /** The counters of runs. */
  readonly runCounters: RunCapChangesDeps['counters']
  /** The time of the database's clock in Unix milliseconds. */
  readonly databaseMs: () => number
  readonly jobs: Jobs
}

export interface Usage {
  readonly usage: UsageReports
  readonly usageOverview: UsageOverview
  readonly activity: Activity
  readonly activityEvents: ActivityEvents
  readonly runs: Runs
  readonly runEnds: RunEnds
  readonly runCaps: RunCapChanges
}

/** Constructs the usage reports. Also registers the jobs that find anomalies and delete old events. */
export function createUsage({ db, clock, ids, log, keepDays, journal, agentNames, jobs, controlLog, checkOwner, ...parts }: UsageDeps): Usage {
  const { runCounters: counters, databaseMs: nowMs, raising, displayRateOf } = parts
  jobs.every('usage.anomalies', anomalySweepMs, signal => sweepAnomalies({ db, clock, ids, journal }, signal))
  jobs.every('usage.retention', retentionEveryMs, async signal => {
    await deleteOldUsage({ db, clock, log, keepDays }, signal)
    await deleteOldHours({ db, clock }, signal)
    await deleteRestingCounters({ db, clock, counters, keepDays }, signal)
    await deleteOldRunRows({ db, clock, keepDays }, signal)
    await deleteOldEnds({ db, clock }, signal)
  })
  const deps = { db, clock, journal, ...(displayRateOf === undefined ? {} : { displayRateOf }) }
  return {
    usage: new UsageReports({ ...deps, agentNames }),
    usageOverview: new UsageOverview(deps),
    activity: new Activity(deps),
    activityEvents: new ActivityEvents(deps),
    runs: new Runs(deps),
    runEnds: new RunEnds({ db, clock, controlLog, checkOwner }),
    runCaps: new RunCapChanges({ controlLog, counters, nowMs, checkOwner, raising }),
  }
}
