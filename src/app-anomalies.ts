/** The sweep over what organisations use. */
import type { AppDeps } from './app-deps.ts'
import type { Domains } from './app-domains.ts'
import { anomalySweepMs, sweepAnomalies } from './gateway/usage/anomaly-sweep.ts'

export function watchUsage({ db, clock, ids }: AppDeps, { limits, jobs }: Domains): void {
  const sweep = { db, clock, ids, flushNow: () => limits.flushNow() }
  jobs.every('usage.anomalies', anomalySweepMs, signal => sweepAnomalies(sweep, signal))
}
