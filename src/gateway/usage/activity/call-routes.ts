/** The routes that a call tried, in order. They are stored with its usage event. Decision 0591 gives the reasons. */
import type { Outcome, UsageEvent } from '../events/record.ts'
import { readTried } from '../events/tried-routes.ts'
import type { CallRow } from './activity-event-queries.ts'

/** One attempt of a call. */
export interface CallRoute {
  readonly provider: string
  readonly model: string
  readonly residency: UsageEvent['residency']
  readonly byok: boolean
  /** `answered`, `failed`, or how the call ended on this route. */
  readonly outcome: 'answered' | Exclude<Outcome, 'ok'>
  /** The status or the class of a failure. Null for an attempt that did not fail. */
  readonly reason: string | null
  /** Milliseconds of the attempt. For the last attempt, the rest of the latency of the call. */
  readonly ms: number
}

/**
 * Returns the attempts. The failed ones are stored. The attempt that ended the call is the one that the event names, unless all attempts failed. An event of an
 * earlier version names only that attempt.
 */
export function routesOf(call: CallRow): readonly CallRoute[] {
  const tried = readTried(call.tried)
  const failed = (tried?.failed ?? []).map((route): CallRoute => ({ ...route, outcome: 'failed' }))
  // A process that dies between a failure and the next dial leaves the record of the attempt that was about to begin.
  const hasOwn = tried === null || tried.dials > tried.failed.length || call.outcome === 'interrupted'
  if (!hasOwn) return failed
  const { provider, model, residency, byok, outcome, status, latencyMs } = call
  const ms = Math.max(0, latencyMs - failed.reduce((sum, route) => sum + route.ms, 0))
  return [
    ...failed,
    { provider, model, residency, byok, outcome: outcome === 'ok' ? 'answered' : outcome, reason: outcome === 'failed' ? String(status) : null, ms },
  ]
}
